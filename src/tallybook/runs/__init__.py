"""Runs, retries and replays: plan, record, execute, compare. Imports everything except scenarios, workspace and cli."""

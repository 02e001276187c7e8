"""Runs of whole workspaces, and the state they leave."""

"""The metadata store on SQLite or PostgreSQL: versions, states and runs. Imports project and model, never storage."""

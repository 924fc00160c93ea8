"""Persistent data: events and sessions in one SQLite file."""

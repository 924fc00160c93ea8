"""Slash commands: their table, the functions that run them, and suggestions while typing."""

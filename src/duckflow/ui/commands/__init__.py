"""Slash commands: their table, their actions and their completion."""

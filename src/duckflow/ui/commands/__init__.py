"""The slash commands: a table, what each does, how one is found and completed."""

"""The slash commands: a table, what each does, and how one is found."""

"""View of the machine for a command: an allow-list, with secrets masked."""

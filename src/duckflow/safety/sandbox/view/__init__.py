"""What a command gets to see of the machine: an allow-list, with secrets masked."""

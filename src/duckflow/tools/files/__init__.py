"""File operations: read, write, edit, delete, move, list."""

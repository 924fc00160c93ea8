"""The file operations: read, write, edit, delete, move, list."""

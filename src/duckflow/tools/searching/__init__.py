"""Searching files: ripgrep, or a small matcher of our own."""

"""Undo, rewind, snapshots before commands, and recovery after a crash."""

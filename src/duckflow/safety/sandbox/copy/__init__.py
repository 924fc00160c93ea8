"""Copies for commands to work on, reading of their effects, and applying these to the folder."""

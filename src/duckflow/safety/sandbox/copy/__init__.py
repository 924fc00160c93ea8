"""Copies of the folder for commands to work on: making them, reading the effects, and applying those."""

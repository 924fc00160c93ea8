"""Processes around a command. Standard library only, which makes them start fast and need little memory."""

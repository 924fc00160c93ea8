"""Processes around a command. Standard library only, so that they start fast and need little memory."""

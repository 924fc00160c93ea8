"""Flags to settings to app. Nothing heavy is imported before a command needs it."""

from duckflow.cli.main import main

__all__ = ["main"]

"""Duckflow inside editors, through the Agent Client Protocol."""

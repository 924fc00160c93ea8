"""Duckflow inside of editors, by the Agent Client Protocol."""

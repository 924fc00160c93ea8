"""The web as operations: pages, and results of a search service."""

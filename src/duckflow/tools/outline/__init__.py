"""Definitions in a file, found by a grammar or by its headings."""

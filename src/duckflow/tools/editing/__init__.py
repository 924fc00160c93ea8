"""Edits of a text: find the place, keep its indentation, show the difference."""

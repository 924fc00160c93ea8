"""Jupyter notebooks: shown as cells in words, and changed cell by cell."""

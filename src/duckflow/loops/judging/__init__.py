"""Judges whether a request is done, and prepares the questions to the user if it is not."""

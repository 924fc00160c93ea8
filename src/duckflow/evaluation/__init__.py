"""Judges whether a request is met: checks, verdict, input for the next attempt. Only checks run anything."""

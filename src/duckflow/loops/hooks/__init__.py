"""Hooks: the user's own commands around actions, requests, questions and sessions."""

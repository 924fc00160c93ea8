"""Texts for the user: events, approvals, goal, health and tables. `live/` has the lines around the prompt."""

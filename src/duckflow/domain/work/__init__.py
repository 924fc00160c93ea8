"""Data about the work on a request: objective, checks, plan, memory, outcomes."""

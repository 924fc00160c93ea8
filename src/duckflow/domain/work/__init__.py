"""The work on a request: objective, checks, plan, outcomes."""

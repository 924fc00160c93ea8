"""Whether a request is met: checks, verdict, and what the next attempt must know. Pure but for the checks."""

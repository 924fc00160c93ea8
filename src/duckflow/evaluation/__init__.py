"""Whether a request is met: checks, verdict, what the next attempt must know. Pure except for the checks."""

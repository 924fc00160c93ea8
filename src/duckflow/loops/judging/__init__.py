"""Whether a request is met, and what the user is asked if it is not."""

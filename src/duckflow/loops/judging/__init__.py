"""Whether a request is met, and what the user is asked where it is not."""

"""Input: the prompt with its keys and layout, and the user's editor."""

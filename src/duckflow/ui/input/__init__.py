"""Input: the prompt with its keys and layout, and the editor."""

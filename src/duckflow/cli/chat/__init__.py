"""The conversation: quick start, prompt first, then the engine behind it."""

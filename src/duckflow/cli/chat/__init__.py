"""The conversation: shows the prompt first, and loads the engine in the background."""

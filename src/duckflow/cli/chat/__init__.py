"""The conversation: the prompt comes first, the engine is loaded behind it."""

"""The conversation: its options, the launch with the prompt first, then the engine behind it."""

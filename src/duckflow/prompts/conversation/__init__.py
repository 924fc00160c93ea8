"""The conversation as a model sees it: it grows, is trimmed, and has a summary of the removed parts."""

"""The conversation as a model sees it: it grows, is trimmed and is summarized."""

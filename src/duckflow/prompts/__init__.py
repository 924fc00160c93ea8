"""Prompt texts: layers from text files with named slots, ordered so that consecutive prompts share a
prefix."""

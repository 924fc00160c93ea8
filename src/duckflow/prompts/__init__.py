"""Prompt texts: layers from text files with named slots, ordered so that prompts share a beginning."""

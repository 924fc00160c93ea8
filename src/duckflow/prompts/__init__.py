"""Prompt texts from files with named slots, in an order that lets prompts share a long beginning."""

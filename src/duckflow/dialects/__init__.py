"""Dialects: native calls, JSON text, and a compact form for small models.

A dialect renders the prompt and turns the model's answer into a Decision. Other code does not depend on it.
"""

"""Dialects: native calls, JSON text, and a compact form for small models.

A dialect renders the prompt and turns the model's answer into a Decision. No other code knows which is used.
"""

"""Ways of asking a model what to do next: native calls, JSON text, and a compact form for small models.

A dialect renders the prompt and turns the answer into a Decision. No other code knows which one is active.
"""

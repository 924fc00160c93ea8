"""Computes the next state: apply(state, event) -> state. Each file handles one part of the state."""

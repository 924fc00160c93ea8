"""The only writer of state: apply(state, event) -> state, one file for each part of the state."""

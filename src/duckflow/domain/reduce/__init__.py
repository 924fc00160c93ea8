"""The only writer of state: apply(state, event) -> state, with one file per part of the state."""

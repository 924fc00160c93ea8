"""The parts of a session put together: `build` is the only place that does it."""

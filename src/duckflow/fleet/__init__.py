"""Many requests in many repositories, durable, by as many workers as there are (SPEC M8)."""

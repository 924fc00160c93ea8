"""Tools that models call. Each takes typed arguments and returns a ToolResult; none writes state."""

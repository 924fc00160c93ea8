"""MCP: tools, resources and prompts of other programs, as operations like any other (SPEC L4)."""

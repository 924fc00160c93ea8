"""MCP: tools, resources and prompts of other programs, offered like any other operation (L4)."""

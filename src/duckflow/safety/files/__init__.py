"""File access for tools: confined to the workspace, atomic, and recorded for undo."""

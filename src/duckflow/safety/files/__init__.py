"""The one safe door to files: confined to the workspace, atomic, recorded for undo."""

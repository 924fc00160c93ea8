"""The agents' task: one small shell command per loop."""

AIDER = "aider"
"""Name of Aider's model, by which the server recognises Aider."""


def command(loop: int) -> str:
    """Return the command of a loop: a small one that differs each time."""
    return f"echo loop {loop}; ls | head -3"

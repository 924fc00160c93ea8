"""What the agents are to do: one small shell command a loop."""

AIDER = "aider"
"""The name of Aider's model, by which the server knows who asks."""


def command(loop: int) -> str:
    """What is run in a loop: something small that differs each time."""
    return f"echo loop {loop}; ls | head -3"

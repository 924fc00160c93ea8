"""The sandbox: where a shell command runs, what it can reach, and how everything it started ends (SPEC G7).

Duckflow never forks itself. A small launcher (`launcher.py`), started with the first command, forks one
supervisor for each; the supervisor starts the command inside bubblewrap or Landlock, watches its limits and
kills all that is left of it. `kernel`, `landlock`, `seccomp`, `launcher`, `supervisor`, `becoming` and
`descendants` run there, without site-packages, so they use the standard library only.
"""

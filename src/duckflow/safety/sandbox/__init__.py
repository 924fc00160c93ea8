"""Sandbox for shell commands: where they run, what they can reach, and how all their processes end (G7).

A command works on a copy of the folder. Its effects are read from the copy and change the folder only when
they are applied (`copy/`, G9). The command sees only an allowed part of the machine (`view/`). `Shell.run`
returns the effects and the id of the copy.

A small launcher, started with the first command, forks one supervisor per command. The supervisor starts the
command inside the copy's view, enforces its limits and kills all remaining processes. Everything in `child/`
runs there, so it and what it imports use the standard library only.
"""

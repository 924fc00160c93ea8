"""Sandbox for shell commands: where they run, what they can reach, and how all their processes end (G7).

A command works on a copy of the folder. Its effects are read from the copy and only change the folder when
they are applied (`copy/`, G9). It sees the rest of the machine through an allow-list (`view/`). `Shell.run`
returns the effects and the id of the copy.

A small launcher, started with the first command, forks one supervisor per command. The supervisor starts the
command inside the copy's view, enforces its limits and kills all remaining processes. Everything in `child/`
runs there, so it and what it imports use the standard library only.
"""

"""The sandbox: where a shell command runs, what it can reach, and how everything it started ends (SPEC G7).

A command works on a copy of the folder; what it did is read from there and happens when it is taken over
(`copy/`, SPEC G9). What it gets to see of the rest of the machine is an allow-list (`view/`). `Shell.run`
gives the effects and the id of the copy.

Duckflow never forks itself. A small launcher, started with the first command, forks one supervisor for each;
the supervisor makes the copy's view, starts the command inside it, watches its limits and kills all
that is left of it. All of `child/` runs there, without site-packages, so it and what it imports of ours use
the standard library only.
"""

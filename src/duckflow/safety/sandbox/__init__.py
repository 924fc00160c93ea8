"""The sandbox: where a shell command runs, what it can reach, and how everything it started ends (SPEC G7).

A command works on a copy of the folder (`overlay`, `copies`); what it did is read from there
(`effect_reader`) and happens when it is taken over (`take_over`, SPEC G9). `Shell.run` gives the effects
and the id of the copy.

Duckflow never forks itself. A small launcher (`launcher.py`), started with the first command, forks one
supervisor for each; the supervisor makes the copy's view, starts the command inside bubblewrap or Landlock,
watches its limits and kills all that is left of it. `syscalls`, `landlock`, `seccomp`, `overlay`,
`launcher`, `supervisor`, `child_setup` and `process_tree` run there, without site-packages, so they use the
standard library only.
"""

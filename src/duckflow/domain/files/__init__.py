"""Files as events tell of them: what was changed, what a command did, which programs are ours."""

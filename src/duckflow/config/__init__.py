"""Settings: the models, where their values come from, and where things live on the user's machine."""

"""Reading what a model sent back: strictly, with one repair, and shown while it arrives."""

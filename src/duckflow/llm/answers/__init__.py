"""Reading what a model sent back: forgiving where it is plain, repaired where not, shown while it arrives."""

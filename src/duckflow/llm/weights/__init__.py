"""The weights of embedded models: which there are, where they come from, and the files on this machine."""

"""Weights of embedded models: the catalogue, the download sources, and the files on this machine."""

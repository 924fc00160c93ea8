"""Search in files, with ripgrep or a small matcher of Duckflow's own."""

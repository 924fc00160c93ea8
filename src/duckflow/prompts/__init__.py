"""What a model reads: layers as text files with named slots, put together so that beginnings repeat."""

"""Where a person types: prompt, keys, editor, and what is drawn around the line."""

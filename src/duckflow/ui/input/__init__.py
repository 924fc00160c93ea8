"""Where a person types: prompt, keys, completion, editor."""

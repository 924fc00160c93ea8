"""Everything around a model call: models, guidance for small ones, rules, memory, titles."""

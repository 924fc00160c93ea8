"""Everything around a model call: models, help for small models, rules, memory and titles."""

"""What the model is asked, and what it is told: model, small models, rules, memory, titles."""

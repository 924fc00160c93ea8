"""From an Action to its effect: dispatcher, gate, action log, evidence."""

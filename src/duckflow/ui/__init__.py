"""What a person sees: view models and the places they are drawn. Knows events, state and catalogues only."""

"""What a request is for and how far it is: objective, checks, plan, outcomes."""

"""Safety: paths, protected names and the policy that decides what a model may do on this machine."""

"""Language models: one port, a client for each way to reach one, and what their answers mean."""

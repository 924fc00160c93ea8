"""What there is: plain frozen data and the one function that changes state. Imports nothing of ours."""

"""What is shown: events, approvals, questions, status, tables."""

"""What is shown: events, approvals, goal, health, tables; live/ is drawn around the prompt."""

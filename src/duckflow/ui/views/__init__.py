"""Views: texts for events, approvals, goal, health and tables; live/ is drawn around the prompt."""

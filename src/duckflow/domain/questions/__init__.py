"""What the user is asked, and what they answer."""

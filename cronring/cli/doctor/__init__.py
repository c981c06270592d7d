"""`cronring doctor`: who is asked, and what the answers of all controllers together mean."""

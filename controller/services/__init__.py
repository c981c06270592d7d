"""What a controller does through its ports alone. The API, runners and stores use it."""

"""What a controller does by its ports alone, for the API, runners and stores alike."""

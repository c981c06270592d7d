"""What a controller's parts ask of each other: protocols, and the values that they pass."""

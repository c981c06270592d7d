"""What controllers, runners and clients prove to each other: certificates, and the channels and ports that use them."""

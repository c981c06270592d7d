"""Which webhooks are told of what, and when a delivery is tried again."""

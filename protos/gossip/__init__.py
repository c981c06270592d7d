"""Generated code of cronring's gossip protocols, by version."""

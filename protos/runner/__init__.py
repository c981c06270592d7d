"""Generated code of cronring's runner protocols, by version."""

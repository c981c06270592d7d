"""Programs that run the rivals, each in processes and an environment of its own: they know nothing of the rest."""

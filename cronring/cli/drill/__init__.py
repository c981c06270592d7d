"""`cronring drill`: what is about to happen, doing it, and what came of it."""

"""The books: what was due, what became of it, and why."""

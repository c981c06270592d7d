"""The node: one controller without I/O, and its parts. Start at node.py."""

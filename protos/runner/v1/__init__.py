"""Generated code, version 1."""

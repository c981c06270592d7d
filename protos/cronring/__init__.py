"""Generated code of the public API, by version."""

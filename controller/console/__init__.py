"""The web console: files that a browser makes its pages of. It asks the REST API, and has no services of its own."""

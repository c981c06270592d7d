"""Files that declare jobs: read for `cronring apply`, written by `cronring jobs export`."""

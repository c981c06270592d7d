"""The runner: hosts modules in child processes, and keeps a stream to every controller."""

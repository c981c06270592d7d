"""What a runner decides, without I/O: `RunnerCore.step(event, now_ns) -> effects`, as the controller's node."""

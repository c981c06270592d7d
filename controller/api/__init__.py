"""What people and tools ask of a controller: gRPC `cronring.v1`, and a little HTTP."""

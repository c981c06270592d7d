"""SWIM's packets over gRPC."""

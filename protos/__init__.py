"""The wire: .proto sources and the Python code generated from them (`make protos`)."""

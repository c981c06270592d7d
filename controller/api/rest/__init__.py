"""REST: the same services by HTTP and JSON, by the routes that the .proto files name. docs/decisions/0077"""

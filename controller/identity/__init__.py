"""Who holds a JWT: what the operator says of issuers, their keys, and the checks that a token has to pass."""

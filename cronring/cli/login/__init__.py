"""`cronring login`: how somebody gets a token of an issuer, where it is kept, and how it is renewed."""

"""What controllers do in PostgreSQL: `PostgresStore` for the node, `PostgresReads` for the API."""

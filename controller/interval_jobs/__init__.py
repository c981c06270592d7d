"""The interval scheduler's REST contract, for clients that exist: docs/interval-jobs.md. A façade over our own jobs."""

"""What deployments and people's orders do to jobs that are there."""

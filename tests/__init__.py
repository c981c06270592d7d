"""Tests. This file comes before everything else that they import."""

import os

# docs/decisions/0019: gRPC's handlers around fork() crash, one time in four, a child that Python code runs in before
# its exec. (That is preexec_fn in tests/support/databases.py, when other threads are inside gRPC.) Nothing here uses
# gRPC in a forked child. gRPC reads this when it is first used.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Clusters of tests and benchmarks are on loopback, and most have no certificates.
os.environ.setdefault("CRONRING_INSECURE", "1")

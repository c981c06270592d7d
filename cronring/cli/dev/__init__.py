"""`cronring dev`: a whole cluster on this machine, to watch, and to break."""

"""Figures that README and docs quote. `make bench` runs all; `python -m bench burst --help` tells of one."""

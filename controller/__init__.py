"""A controller: pure core, thin shell. Start reading at `controller/core/node/node.py`; `controller/main.py`
composes.
"""

"""Faults in real processes, judged: each row of docs/reliability.md is a command.

A row (`rows_*.py`) plays a fault on a stage (`stage.py`: real controllers, runners, a PostgreSQL of its own, about
twenty ticks a second) and excuses the ticks that nothing could run at. It is judged (`judge.py`, with
`tests/support/judge.py`) by the database and the verbs' journal: missed, late, early, twice, beside, lost. Hosts are
network namespaces behind a switch of the tests' own (`tests/support/hosts.py`, `switch.py`), as `tc netem` isn't
to be had.
"""

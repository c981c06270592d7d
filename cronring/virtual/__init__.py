"""Virtual time: a whole cluster in one process, in which a year of ticks takes as long as there are ticks.

The real node (controller/core/node), the real runner's core and the real policies run here. They run over the store in
memory, and a clock that only moves when the engine moves it. `cronring dev --speed` and `cronring.testing` are made of
it.
"""

"""SWIM (Das, Gupta, Motivala 2002) with Lifeguard's local health (Dadgar, Phillips, Currey 2018), without I/O.

    swim = Swim("c-1", "10.0.0.1:7000", ClusterSettings(), random.Random(7), now_ns)
    swim.greet((("c-2", "10.0.0.2:7000"),), now_ns)   # from the `controllers` table, or --join
    swim.receive(packet, now_ns)                      # whenever one arrives
    swim.wake(now_ns)                                 # when next_deadline() has come; too early or too late is no harm
    swim.peer_refused("10.0.0.2:7000", now_ns)        # a connection there was refused: nothing listens
    swim.drain(now_ns)                                # I own no slots any more, but still gossip
    swim.leave(now_ns)                                # the last packets; afterwards nothing more comes

Each returns a Reaction: `packets` (SendPacket effects, in order), `changes` (Change(before, after), my own draining among
them) and `notes`. `slot_owners()` are the ids for Ring.build; it only ever changes along with a Change in a Reaction.
"""

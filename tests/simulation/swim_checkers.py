"""What must hold of membership: some of it at every change (Safety), some once the network is well (settled)."""

from cronring.controller.core.swim.member import MemberChange
from cronring.controller.core.swim.messages import Status
from cronring.virtual.clock import SECOND
from tests.simulation.swim_members import Members, Process, State


class Safety:
    """Watches every change of belief in the whole world; `violations` in words."""

    def __init__(self, members: Members) -> None:
        self.violations: list[str] = []
        self.false_deaths: list[tuple[int, str, str]] = []  # (instant, holder, member that was well)
        self._members = members
        self._owners: dict[str, tuple[str, ...]] = {}
        members.watchers.append(self)

    def changed(self, now_ns: int, holder: Process, change: MemberChange) -> None:
        before, after = change
        subject = self._members.processes.get(after.member_id)
        if subject is None:
            self._violation(now_ns, holder, f"heard of {after.member_id}, who never was")
            return
        self._check_refutation(now_ns, holder, change)
        if after.incarnation > subject.swim.me.incarnation:
            self._violation(now_ns, holder, f"{after.member_id} never reached incarnation {after.incarnation}")
        if after.status is Status.LEFT and subject.state is not State.LEFT and subject is not holder:
            self._violation(now_ns, holder, f"{after.member_id} has not left")
        if before is not None and after.address != before.address:
            self._violation(now_ns, holder, f"{after.member_id} moved to {after.address}")
        if after.status is Status.DEAD and subject.state is State.UP:
            self.false_deaths.append((now_ns, holder.member_id, after.member_id))

    def _check_refutation(self, now_ns: int, holder: Process, change: MemberChange) -> None:
        before, after = change
        if before is None:
            return
        if before.status is Status.LEFT:
            self._violation(now_ns, holder, f"{after.member_id} came back after leaving")
        better = after.status < before.status
        if better and after.incarnation <= before.incarnation:
            self._violation(now_ns, holder, f"{after.member_id} got better without refuting: {before} -> {after}")
        if after.incarnation < before.incarnation and after.status is not Status.LEFT:
            self._violation(now_ns, holder, f"{after.member_id} went back: {before} -> {after}")
        if before.draining and not after.draining:
            self._violation(now_ns, holder, f"{after.member_id} owns slots again after draining")

    def _violation(self, now_ns: int, holder: Process, what: str) -> None:
        self.violations.append(f"{now_ns / SECOND:.3f} {holder.member_id}: {what}")


def disagreements(members: Members, strict: bool = True) -> list[str]:
    """Where running processes' rosters differ from the truth; empty once settled. Not strict: the dead may linger."""
    truth = {process.member_id: process.swim.me for process in members.running()}
    problems: list[str] = []
    for holder in members.running():
        held = {member.member_id: member for member in holder.swim.live()}
        for member_id, me in truth.items():
            belief = held.get(member_id)
            if belief is None:
                problems.append(f"{holder.member_id} misses {member_id}")
            elif belief != me and (strict or belief.draining != me.draining):
                problems.append(f"{holder.member_id} believes {belief}, not {me}")
        if strict:
            problems += [f"{holder.member_id} still holds {gone}" for gone in held if gone not in truth]
    return problems


def settle(members: Members, within_ns: int, strict: bool = True, every_ns: int = SECOND // 10) -> int | None:
    """Let time pass until nobody disagrees; how long that took, or None if longer than `within_ns`."""
    began = members.clock.now_ns
    while disagreements(members, strict):
        if members.clock.now_ns - began >= within_ns:
            return None
        members.clock.run_for(every_ns)
    return members.clock.now_ns - began

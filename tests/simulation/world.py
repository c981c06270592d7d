"""A whole cluster in one thread, in virtual time, from one seed.

Real: nodes, runner cores, schemas, the rules of the store. Simulated: time, the network, processes, PostgreSQL's whims.
"""

import hashlib
import random
from collections.abc import Callable
from functools import partial
from typing import Final

from cronring.controller.core.ledger.audit import Audit
from cronring.controller.core.node.events import DrainExpired, DrainRequested, JobsCreated
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.store import Deployed
from cronring.virtual.clock import SECOND, VirtualClock
from tests.simulation import placed, table_faults
from tests.simulation.cancels import Cancels
from tests.simulation.checkers import (
    Journal,
    check_accounts,
    check_audit,
    check_converged,
    check_lost,
    check_once,
    check_results,
)
from tests.simulation.controllers import Controller, settings_for_simulation
from tests.simulation.database import EPOCH_US, Database
from tests.simulation.faults import end_faults, schedule_faults
from tests.simulation.liveness import check_liveness
from tests.simulation.network import Network
from tests.simulation.operating import Operator
from tests.simulation.ordering import Orders
from tests.simulation.pace import Pace
from tests.simulation.policies import PolicyWorkload
from tests.simulation.policy_checkers import check_policies
from tests.simulation.runners import Runner
from tests.simulation.workload import Workload
from tests.simulation.year_history import YearStore

FAULTS_NS: Final = 25 * SECOND
RECOVERY_NS: Final = 24 * SECOND
CALM_NS: Final = 6 * SECOND
OPERATED_NS: Final = 33 * SECOND
SETTLED_US: Final = 15_000_000
PLAIN_SHARE: Final = 0.2
ORDERS_SHARE: Final = 0.7
SECOND_US: Final = 1_000_000
DRAIN_TIMEOUT_NS: Final = 5 * SECOND


class World:
    """`run()` goes through the phases and raises AssertionError for whatever does not hold.

    `faults`: names of those of `faults.py` that happen; by default the seed draws them. `plain`: as worlds were before
    there were policies: jobs have none, and no operator does anything. Of seeds that don't say so, some are. `cancels`:
    somebody cancels executions meanwhile. `orders`: and gives the orders of ordering.py; of worlds with policies, most.
    `hard`: whether there are those of table faults.py; drawn, unless anything else is told. `places`: whether its
    runners
    have few places (placed.py); drawn, as well.
    """

    pace = Pace()
    default_jitter = ""

    def __init__(
        self,
        seed: int,
        show: Callable[[str], None] | None = None,
        faults: tuple[str, ...] = (),
        *,
        plain: bool | None = None,
        cancels: bool = False,
        orders: bool | None = None,
        hard: bool | None = None,
        places: bool | None = None,
    ) -> None:
        self.seed = seed
        self._faults = tuple(name for name in faults if name not in table_faults.names())
        self._table_faults = tuple(name for name in faults if name in table_faults.names())
        told = bool(faults) or plain is not None or orders is not None
        drawn_hard = table_faults.draw(seed) and not told
        self.hard = bool(self._table_faults) or (drawn_hard if hard is None else hard)
        self.hard_rng = random.Random(f"hardships of {seed}")
        self.rng = random.Random(seed)
        # A generator of its own, so that plain worlds remain the stories that they were.
        self._policy_rng = random.Random(f"policies of {seed}")
        drawn_plain = self._policy_rng.random() < PLAIN_SHARE
        self.plain = drawn_plain if plain is None else plain
        self.start_us = EPOCH_US + (0 if self.plain else self._policy_rng.randrange(60) * SECOND_US)
        self._show = show
        self._digest = hashlib.blake2b(digest_size=16)
        self.clock = VirtualClock()
        self.network = Network(self.clock, self.fork())
        self.database = self._database()
        self.settings = self._settings()
        self.workload = self._workload()
        self.journal = Journal(self)
        self.calm_us = CALM_NS // 1_000
        self.notify_loss = self.rng.choice((0.0, 0.0, 0.3, 1.0))
        self.database.store.on_lost = lambda row: check_lost(self, row)
        self.addresses = tuple(f"host-{number}:7000" for number in range(self.rng.choice((1, 2, 3, 3, 4, 5))))
        drawn_places = placed.draw(seed) and not told and hard is None
        self._placed = drawn_places if places is None else places
        self.few_places: placed.Places | None = None
        self.controllers: list[Controller] = []
        self.runners: list[Runner] = []
        self.deployments: tuple[str, ...] = ()
        self.deploying = False
        self.operator: Operator | None = None
        self.settled_us = 0  # from then on (PostgreSQL's time) nothing should be left of any fault
        # Drawn by one of its own, too, so that worlds without orders remain what they were.
        drawn_orders = random.Random(f"whether {seed} has orders").random() < ORDERS_SHARE
        self.ordered = not self.plain and (drawn_orders if orders is None else orders)
        self.orders: Orders | None = None
        self.audit = Audit()  # once it is over
        self.cancels = Cancels(self, self._cancels_until_ns()) if cancels or self.ordered else None

    def _cancels_until_ns(self) -> int:
        return FAULTS_NS + RECOVERY_NS

    def _database(self) -> Database:
        if self.plain:
            return Database(self.clock, self.network, self.fork())
        return Database(self.clock, self.network, self.fork(), self.start_us, YearStore)

    def _settings(self) -> ClusterSettings:
        # Mostly so long that a hard timeout can't hide that something was forgotten.
        return settings_for_simulation(self.rng.choice((18_000, 100_000, 100_000, 100_000)))

    def _workload(self) -> Workload:
        return Workload(self.fork()) if self.plain else PolicyWorkload(self.fork(), self.start_us)

    def fork(self) -> random.Random:
        return random.Random(self.rng.getrandbits(64))

    def log(self, line: str) -> None:
        text = f"{self._time_shown()} {line}"
        self._digest.update(text.encode())
        if self._show is not None:
            self._show(text)

    def _time_shown(self) -> str:
        return f"{self.clock.now_ns / SECOND:10.6f}"

    @property
    def digest(self) -> str:
        """Of everything that was logged: equal for equal seeds, whatever the process."""
        return self._digest.hexdigest()

    def run(self) -> None:
        """First faults, and safety; then none, and liveness."""
        if self._placed:
            self.few_places = placed.Places(self.seed)
        for address in self.addresses:
            self.later(0, 2, partial(self.start_controller, address))
        self.later(0.1, 1, self.deploy)
        for _ in range(self.rng.choice((0, 0, 0, 1, 2, 4))):
            self.later(4, 20, self.roll_out)
        for _ in range(self.rng.randint(1, 3)):
            self.later(1, 3, self.start_runner)
        self._go_wrong(FAULTS_NS)
        self.employ_operators(OPERATED_NS)
        self.clock.run_until(FAULTS_NS)
        end_faults(self)
        if self.hard:
            table_faults.end_table_faults(self)
        if self.few_places is not None:
            self.few_places.scarce = False
            self.start_runner()
        self.settled_us = self.database.now_us() + SETTLED_US
        self.clock.run_for(RECOVERY_NS + CALM_NS)
        self.judge()

    def _go_wrong(self, until_ns: int) -> None:
        alone = self.hard and table_faults.schedule_table_faults(self, until_ns, self._table_faults)
        if self._table_faults or self._faults:
            alone = not self._faults
        if not alone and (len(self.addresses) > 1 or self.rng.random() < 0.8):
            schedule_faults(self, until_ns, self._faults)

    def employ_operators(self, until_ns: int) -> None:
        if isinstance(self.workload, PolicyWorkload):
            self.operator = Operator(self, self.workload, until_ns)
        if self.ordered:
            self.orders = Orders(self, until_ns)

    def judge(self) -> None:
        """When all has been quiet for long enough."""
        if self.few_places is not None:
            placed.check_waiting(self)
        check_once(self.database.store)
        check_results(self)
        self.audit = check_audit(self.database.store, self.database.stepped_back_us)
        check_converged(self)
        check_liveness(self)
        if self.operator is None:
            check_accounts(self.database.store)
        else:
            check_policies(self, self.operator.promised + ([] if self.orders is None else self.orders.promised))
        if self.cancels is not None:
            # Runners that were away longest are back by then.
            self.cancels.check(self.database.now_us() - (RECOVERY_NS // 2 + CALM_NS) // 1_000)

    def later(self, low_s: float, high_s: float, action: Callable[[], None]) -> None:
        self.clock.call_after(int(self.rng.uniform(low_s, high_s) * SECOND), action)

    # Controllers and runners

    def controller_at(self, address: str) -> Controller | None:
        return next((each for each in self.controllers if each.alive and each.address == address), None)

    def some_controller(self) -> Controller | None:
        able = [controller for controller in self.controllers if controller.alive and not controller.stopped]
        return self.rng.choice(able) if able else None

    def some_runner(self) -> Runner | None:
        able = [runner for runner in self.runners if runner.alive]
        return self.rng.choice(able) if able else None

    def start_controller(self, address: str) -> None:
        if self.controller_at(address) is not None:
            return
        name = f"c{len(self.controllers) + 1}"
        drift_ppm = self.rng.randint(-self.pace.drift_ppm, self.pace.drift_ppm)
        self.log(f"start {name} at {address}, drifting by {drift_ppm} ppm")
        controller = Controller(self, name, address, self.fork(), drift_ppm)
        self.controllers.append(controller)
        controller.start()

    def drain(self, controller: Controller) -> None:
        """SIGTERM; after the drain timeout it leaves whatever it still holds, and another process comes."""
        controller.put(DrainRequested())

        def expire() -> None:
            controller.put(DrainExpired())
            self.later(0, 3, lambda: self.start_controller(controller.address))

        self.clock.call_after(DRAIN_TIMEOUT_NS, expire)

    def start_runner(self) -> None:
        """It hosts every version there is; before there is any, it waits."""
        if not self.deployments:
            self.later(0.1, 0.5, self.start_runner)
            return
        name = f"r{len(self.runners) + 1}"
        drift_ppm = self.rng.randint(-self.pace.drift_ppm, self.pace.drift_ppm)
        self.log(f"start {name}")
        kind = Runner if self.few_places is None else placed.PlacedRunner
        runner = kind(self, name, self.deployments, self.fork(), drift_ppm)
        self.runners.append(runner)
        runner.start()

    def roll_out(self) -> None:
        """The next version, and runners that have both, one after the other instead of those that have only the old.

        Not while the version before is still on its way: it would arrive as the latest one, and have no runners.
        """
        if self.deploying:
            self.later(0.1, 0.5, self.roll_out)
            return
        self.log("FAULT roll out the next version")
        self.workload.change(self.rng)
        old = [runner for runner in self.runners if runner.alive]

        def replace_runners() -> None:
            self.start_runner()
            for runner in old:
                self.later(1, 4, runner.drain)

        self.deploy(replace_runners)

    def deploy(self, then: Callable[[], None] = lambda: None) -> None:
        """By one of the controllers, which hears of the jobs from itself; others by NOTIFY, if that isn't lost."""
        self.deploying = True
        module, digest = self.workload.module()
        creator = self.some_controller()

        def deployed(result: object) -> None:
            if not isinstance(result, Deployed):
                self.later(0.1, 0.5, ask)
                return
            self.deploying = False
            self.deployments += (result.key,)
            self.log(f"deployed {result.key} with {len(result.jobs)} jobs")
            if creator is not None:
                creator.put(JobsCreated(result.jobs))
            then()

        def ask() -> None:
            create = lambda store: store.create_deployment(module, digest, 1, 4_000, True, self.default_jitter)  # noqa: E731
            self.database.ask("operator", create, deployed)

        ask()

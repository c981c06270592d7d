"""How fast a simulated cluster lives: by the second, or stretched to hours, so that a year costs little."""

from dataclasses import dataclass, field

from cronring.runner.core.settings import RunnerSettings
from cronring.virtual.clock import MS


@dataclass(frozen=True, slots=True)
class Pace:
    """What isn't in ClusterSettings. `drift_ppm`: how wrong monotonic clocks may be."""

    drift_ppm: int = 200
    redial_ns: int = 500 * MS  # a runner tries again to reach a controller
    register_again_ns: int = 500 * MS  # a controller tries again to register a runner
    runner: RunnerSettings = field(default_factory=RunnerSettings)

"""What a controller counts, in Prometheus' words. The hot path adds to plain lists; text is made when asked for."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from cronring.controller.core.model import (
    ActivationResult,
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    EnqueueRequest,
    EnqueueResult,
)
from cronring.controller.runtime.help import HELP
from cronring.schema.execution import Outcome

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_BOUNDS_US: Final = tuple(round(bound * 1_000_000) for bound in _SECONDS)

Figures = Callable[[], dict[str, float]]  # name without the `cronring_` prefix -> value


class Histogram:
    """Durations in microseconds, shown in seconds: a fifth of prometheus_client's own cost per observation."""

    __slots__ = ("_counts", "_sum_us")

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_US) + 1)
        self._sum_us = 0

    def observe(self, duration_us: int) -> None:
        self._counts[bisect_left(_BOUNDS_US, duration_us)] += 1
        self._sum_us += duration_us

    def family(self, name: str) -> HistogramMetricFamily:
        total, buckets = 0, []
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        seconds = self._sum_us / 1_000_000
        return HistogramMetricFamily(f"cronring_{name}", HELP[name], buckets=buckets, sum_value=seconds)


class Metrics:
    """One per process. Gauges of other parts (members, ring share, queues) are functions that are asked when shown."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)  # its CPU, memory, open files, start
        PlatformCollector(registry=self.registry)
        self.claim_lateness = Histogram()
        self.start_delay = Histogram()
        self.duration = Histogram()
        self.loop_lag = Histogram()
        self._claims: Counter[str] = Counter()
        self._activation_claims: Counter[str] = Counter()
        self._activated: Counter[str] = Counter()
        self._executions: Counter[str] = Counter()
        self._log_lines: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[str] = Counter()
        self._store_failures: Counter[str] = Counter()
        self._skipped: Callable[[], Mapping[str, int]] = dict
        self._gauges: list[Figures] = []
        self._counters: list[Figures] = []
        self._build: dict[str, str] = {}

    def built(self, **versions: str) -> None:
        """The versions that run here, by part. A further call adds to them."""
        self._build |= versions

    def count_skipped(self, skipped: Callable[[], Mapping[str, int]]) -> None:
        """`skipped` gives ticks by reason. It is called whenever the metrics are shown."""
        self._skipped = skipped

    def add_gauges(self, gauges: Figures) -> None:
        """`gauges` is called whenever the metrics are shown."""
        self._gauges.append(gauges)

    def add_counters(self, counters: Figures) -> None:
        """`counters` is called whenever the metrics are shown. Its values only grow."""
        self._counters.append(counters)

    def logged(self, event: str, level: str) -> None:
        self._log_lines[event, level] += 1

    def refused(self, what: str, count: int = 1) -> None:
        """Somebody sent what is not allowed."""
        self._refused[what] += count

    def store_failed(self, effect: str) -> None:
        self._store_failures[effect] += 1

    def claimed(self, requests: list[ClaimRequest], results: list[ClaimResult]) -> None:
        run_at = {request.job_id: request.run_at for request in requests}
        won = 0
        for result in results:
            if result.updated:
                won += 1
                self.claim_lateness.observe(result.claimed_at - run_at[result.job_id])
        self._claims["won"] += won
        self._claims["lost"] += len(requests) - won

    def enqueued(self, requests: list[EnqueueRequest], results: list[EnqueueResult]) -> None:
        """Ticks of queues: their claims complete them."""
        won = 0
        for request, result in zip(requests, results, strict=True):
            if result.updated:
                won += 1
                self.claim_lateness.observe(result.claimed_at - request.run_at)
                self._executions[Outcome.COMPLETED.value] += not result.refused
        self._claims["won"] += won
        self._claims["lost"] += len(requests) - won

    def activated(self, results: list[ActivationResult]) -> None:
        for result in results:
            execution = result.execution
            if execution is not None:
                self._activation_claims["won"] += 1
                self._activated[execution.trigger] += 1
            else:
                self._activation_claims["gone" if result.gone else "waits"] += 1

    def ended(self, requests: list[EndRequest], results: list[EndResult]) -> None:
        decided = {result.execution_id for result in results if result.ended}
        for request in requests:
            report = request.report
            if report.execution_id in decided:
                self._executions[report.outcome.value] += 1
                self.start_delay.observe(report.started_at - report.claimed_at)
                self.duration.observe(report.ended_at - report.started_at)

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        yield InfoMetricFamily("cronring_build", HELP["build"], value=self._build)
        yield _counter("claims", "result", self._claims)
        yield _counter("activation_claims", "result", self._activation_claims)
        yield _counter("activations_started", "trigger", self._activated)
        yield _counter("executions", "outcome", self._executions)
        yield _counter("node_ticks_skipped", "reason", self._skipped())
        yield _counter("refused", "what", self._refused)
        yield _counter("store_failures", "effect", self._store_failures)
        lines = CounterMetricFamily("cronring_log_lines", HELP["log_lines"], labels=["event", "level"])
        for (event, level), count in sorted(self._log_lines.items()):
            lines.add_metric([event, level], count)
        yield lines
        yield self.claim_lateness.family("claim_lateness_seconds")
        yield self.start_delay.family("start_delay_seconds")
        yield self.duration.family("execution_duration_seconds")
        yield self.loop_lag.family("loop_lag_seconds")
        for counters in self._counters:
            for name, value in counters().items():
                yield CounterMetricFamily(f"cronring_{name}", HELP[name], value=value)
        for gauges in self._gauges:
            for name, value in gauges().items():
                yield GaugeMetricFamily(f"cronring_{name}", HELP[name], value=value)


def _counter(name: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"cronring_{name}", HELP[name], labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family

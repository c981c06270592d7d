"""Every service that people and programs call. A new one is made and registered here; `main.py` doesn't know of it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import grpc

from cronring.controller.api.audit_log import AuditLogService
from cronring.controller.api.cluster import ClusterService
from cronring.controller.api.defaults import DefaultsService
from cronring.controller.api.deployments import DeploymentsService
from cronring.controller.api.doctor import DoctorService, ProcessFacts
from cronring.controller.api.drills import DrillsService
from cronring.controller.api.events import EventsService
from cronring.controller.api.executions import ExecutionsService
from cronring.controller.api.following import OutputFollowers
from cronring.controller.api.forecast import ForecastService
from cronring.controller.api.history import HistoryService
from cronring.controller.api.identities import IdentitiesService
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.jobs import JobsService
from cronring.controller.api.ledger import LedgerService
from cronring.controller.api.limits import LimitsService
from cronring.controller.api.new_jobs import NewJobs
from cronring.controller.api.notifications import NotificationsService
from cronring.controller.api.queue_waiting import QueueWaiting
from cronring.controller.api.queues import QueuesService
from cronring.controller.api.schedules import SchedulesService
from cronring.controller.api.sets import SetsService
from cronring.controller.api.statistics import StatisticsService
from cronring.controller.api.templates import TemplatesService
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.verb_calls import VerbCallsService
from cronring.controller.api.watch import JobHub
from cronring.controller.api.watch_executions import ExecutionHub
from cronring.controller.api.workspaces import WorkspacesService
from cronring.controller.core.doctor.finding import Finding
from cronring.controller.core.node.events import Event
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.log import FaultLog
from cronring.controller.ports.store import ControllerInfo, Outputs
from cronring.controller.ports.stores import Stores
from cronring.controller.ports.webhooks import Posting
from cronring.controller.services.deploying import Deployer
from cronring.controller.services.past import Past
from cronring.controller.services.vault import Vault
from cronring.protos.cronring.v1 import (
    audit_log_pb2_grpc,
    cluster_pb2_grpc,
    defaults_pb2_grpc,
    deployments_pb2_grpc,
    doctor_pb2_grpc,
    drills_pb2_grpc,
    events_pb2_grpc,
    executions_pb2_grpc,
    forecast_pb2_grpc,
    history_pb2_grpc,
    identities_pb2_grpc,
    jobs_pb2_grpc,
    ledger_pb2_grpc,
    limits_pb2_grpc,
    notifications_pb2_grpc,
    queues_pb2_grpc,
    schedules_pb2_grpc,
    sets_pb2_grpc,
    statistics_pb2_grpc,
    templates_pb2_grpc,
    workspaces_pb2_grpc,
)

Registration = tuple[str, Callable[[grpc.aio.Server], None]]
"""A service's full name, and what adds it to a server."""


class ApiParts(NamedTuple):
    """What the services need. `put` gives events to the node; `fail` is told of an unexpected error."""

    info: ControllerInfo
    settings: ClusterSettings
    clock: Clock
    node: Node
    put: Callable[[Event], None]
    fail: Callable[[BaseException], None]
    box: TokenBox
    stores: Stores
    deployer: Deployer
    outputs: Outputs
    posting: Posting
    vault: Vault
    around: ProcessFacts
    examine: Callable[[], Awaitable[Sequence[Finding]]]
    console_url: str = ""  # where browsers find the console
    trace_url: str = ""  # where they find traces: a template


class Api:
    """The services, and the hubs that watchers share."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self._defaults = Defaults(parts.settings.timeout_ms, parts.settings.default_jitter)
        self._jobs = JobHub(parts.stores.reads, parts.box, parts.fail)
        self._executions = ExecutionHub(parts.stores.reads, parts.box, parts.fail)
        self._consumers = QueueWaiting(parts.stores.queues, parts.fail)

    def watchers(self) -> dict[str, int]:
        """By the names of their gauges."""
        return {
            "job_watchers": len(self._jobs),
            "execution_watchers": len(self._executions),
            "queue_consumers_waiting": len(self._consumers),
        }

    async def close(self) -> None:
        """Every watcher is sent away."""
        await self._jobs.close()
        await self._executions.close()
        await self._consumers.close()

    def registrations(self) -> list[Registration]:
        """All services, made anew."""
        return [*self._about_jobs(), *self._about_executions(), *self._about_the_cluster()]

    def _about_jobs(self) -> list[Registration]:
        parts, stores = self.parts, self.parts.stores
        deployments = DeploymentsService(stores.reads, parts.box, parts.deployer)
        jobs = self._jobs_service()
        templates = TemplatesService(stores.templates, parts.box)
        limits = LimitsService(stores.limits, parts.box)
        defaults = DefaultsService(stores.defaults, parts.box)
        workspaces = WorkspacesService(stores.workspaces, parts.box, parts.put)
        sets = SetsService(stores, parts.box, self._defaults, parts.put)
        queues = QueuesService(stores.queues, self._consumers, parts.box)
        return [
            ("cronring.v1.Deployments", partial(deployments_pb2_grpc.add_DeploymentsServicer_to_server, deployments)),
            ("cronring.v1.Defaults", partial(defaults_pb2_grpc.add_DefaultsServicer_to_server, defaults)),
            ("cronring.v1.Jobs", partial(jobs_pb2_grpc.add_JobsServicer_to_server, jobs)),
            ("cronring.v1.Templates", partial(templates_pb2_grpc.add_TemplatesServicer_to_server, templates)),
            ("cronring.v1.Limits", partial(limits_pb2_grpc.add_LimitsServicer_to_server, limits)),
            ("cronring.v1.Workspaces", partial(workspaces_pb2_grpc.add_WorkspacesServicer_to_server, workspaces)),
            (
                "cronring.v1.Schedules",
                partial(schedules_pb2_grpc.add_SchedulesServicer_to_server, self._schedules_service()),
            ),
            ("cronring.v1.Sets", partial(sets_pb2_grpc.add_SetsServicer_to_server, sets)),
            ("cronring.v1.Queues", partial(queues_pb2_grpc.add_QueuesServicer_to_server, queues)),
        ]

    def _schedules_service(self) -> SchedulesService:
        stores = self.parts.stores
        new = NewJobs(stores.reads, stores.templates, self._defaults)
        return SchedulesService(stores, self._defaults, self.parts.box, new)

    def _jobs_service(self) -> JobsService:
        parts, stores = self.parts, self.parts.stores
        return JobsService(
            stores.reads, parts.box, self._jobs, stores.control, stores.templates, self._defaults, parts.put
        )

    def verb_calls(self, refused: OnRefusal, log: FaultLog) -> VerbCallsService:
        """What answers verbs, by the streams of their runners. `refused` counts what they may not."""
        parts, stores = self.parts, self.parts.stores
        return VerbCallsService(
            stores.verb_calls, self._jobs_service(), stores.control, stores.reads, parts.put, stores.tokens, refused,
            log,
        )  # fmt: skip

    def _about_executions(self) -> list[Registration]:
        parts, stores = self.parts, self.parts.stores
        following = OutputFollowers(stores.reads, parts.outputs)
        executions = ExecutionsService(
            stores.reads, parts.box, stores.execution_control, following, self._executions, parts.put
        )
        ledger = LedgerService(stores.ledger, stores.reads)
        statistics = StatisticsService(stores.statistics, stores.reads)
        notifications = NotificationsService(stores.webhooks, parts.posting, parts.box, parts.vault)
        return [
            ("cronring.v1.Executions", partial(executions_pb2_grpc.add_ExecutionsServicer_to_server, executions)),
            ("cronring.v1.Ledger", partial(ledger_pb2_grpc.add_LedgerServicer_to_server, ledger)),
            ("cronring.v1.Statistics", partial(statistics_pb2_grpc.add_StatisticsServicer_to_server, statistics)),
            (
                "cronring.v1.Notifications",
                partial(notifications_pb2_grpc.add_NotificationsServicer_to_server, notifications),
            ),
        ]

    def _about_the_cluster(self) -> list[Registration]:
        parts, own_id = self.parts, self.parts.info.controller_id
        forecast = ForecastService(parts.stores.forecast, parts.stores.reads)
        past = Past(parts.stores.history)
        cluster = ClusterService(
            own_id, parts.node, parts.stores.reads, parts.clock, past, parts.box, parts.console_url, parts.trace_url
        )
        history = HistoryService(past, parts.stores.reads, parts.box)
        doctor = DoctorService(parts.info, parts.node, parts.around, parts.clock, parts.settings, parts.examine)
        drills = DrillsService(own_id, parts.node, parts.stores.drills, parts.clock, parts.put)
        events = EventsService(self._jobs, self._executions, parts.stores.reads, parts.node, self._defaults)
        identities = IdentitiesService(parts.stores.tokens, parts.stores.web_sessions, parts.box)
        audit_log = AuditLogService(parts.stores.audit_log, parts.box)
        return [
            ("cronring.v1.AuditLog", partial(audit_log_pb2_grpc.add_AuditLogServicer_to_server, audit_log)),
            ("cronring.v1.Cluster", partial(cluster_pb2_grpc.add_ClusterServicer_to_server, cluster)),
            ("cronring.v1.Doctor", partial(doctor_pb2_grpc.add_DoctorServicer_to_server, doctor)),
            ("cronring.v1.Drills", partial(drills_pb2_grpc.add_DrillsServicer_to_server, drills)),
            ("cronring.v1.Events", partial(events_pb2_grpc.add_EventsServicer_to_server, events)),
            ("cronring.v1.Forecast", partial(forecast_pb2_grpc.add_ForecastServicer_to_server, forecast)),
            ("cronring.v1.History", partial(history_pb2_grpc.add_HistoryServicer_to_server, history)),
            ("cronring.v1.Identities", partial(identities_pb2_grpc.add_IdentitiesServicer_to_server, identities)),
        ]

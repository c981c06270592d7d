"""Everything that the API asks of the database, in one value."""

from typing import NamedTuple

from cronring.controller.ports.audit_chain import AuditLog
from cronring.controller.ports.defaults import DefaultsStore
from cronring.controller.ports.drills import Drills
from cronring.controller.ports.forecast import Forecast
from cronring.controller.ports.history import History
from cronring.controller.ports.interval_jobs import IntervalStore
from cronring.controller.ports.ledger import Ledger
from cronring.controller.ports.limits import Limits
from cronring.controller.ports.queues import Queues
from cronring.controller.ports.reads import Reads
from cronring.controller.ports.request_keys import RequestKeys
from cronring.controller.ports.sets import Sets
from cronring.controller.ports.statistics import Statistics
from cronring.controller.ports.store import Control, ExecutionControl
from cronring.controller.ports.templates import Templates
from cronring.controller.ports.tokens import TokenStore
from cronring.controller.ports.verb_calls import VerbCalls
from cronring.controller.ports.web_sessions import WebSessionStore
from cronring.controller.ports.webhooks import Webhooks
from cronring.controller.ports.workspaces import Workspaces


class Stores(NamedTuple):
    """One for each kind of question."""

    audit_log: AuditLog
    control: Control
    defaults: DefaultsStore
    drills: Drills
    execution_control: ExecutionControl
    forecast: Forecast
    history: History
    interval_jobs: IntervalStore
    ledger: Ledger
    limits: Limits
    queues: Queues
    reads: Reads
    request_keys: RequestKeys
    sets: Sets
    statistics: Statistics
    templates: Templates
    tokens: TokenStore
    verb_calls: VerbCalls
    web_sessions: WebSessionStore
    webhooks: Webhooks
    workspaces: Workspaces

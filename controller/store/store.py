"""The store of a node, on PostgreSQL."""

from cronring.controller.store.activations import ActivationStatements
from cronring.controller.store.deployments import DeploymentStatements
from cronring.controller.store.executions import ExecutionStatements
from cronring.controller.store.jobs import JobStatements
from cronring.controller.store.leases import LeaseStatements


class PostgresStore(JobStatements, ExecutionStatements, ActivationStatements, LeaseStatements, DeploymentStatements):
    """controller.ports.store.Store, composed of its parts. `PostgresStore(await Database.open(url, "cronring
    ..."))`.
    """

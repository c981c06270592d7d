"""The store of a node, on PostgreSQL."""

from controller.store.activations import ActivationStatements
from controller.store.deployments import DeploymentStatements
from controller.store.executions import ExecutionStatements
from controller.store.jobs import JobStatements
from controller.store.leases import LeaseStatements


class PostgresStore(JobStatements, ExecutionStatements, ActivationStatements, LeaseStatements, DeploymentStatements):
    """controller.ports.Store, composed of its parts. `PostgresStore(await Database.open(url, "cronring ..."))`."""

"""`run`: a runner's whole life, from its files to its exit code."""

import asyncio
import gc
import os
import random
import signal
import socket
import sys
import uuid
from importlib.metadata import version

import uvloop

from cronring.memory import spare_memory
from cronring.protos.modules import module_message
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.config import RunnerConfig
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.settings import SECOND_NS, RunnerSettings
from cronring.runner.describe import DescribedFiles, DescribeFailed
from cronring.runner.modules import InvalidFile, LoadedModule, read_module
from cronring.runner.service import RunnerService, log
from cronring.runner.trust import establish
from cronring.schema.module import Module
from cronring.trust.certificates import CertificateError

EXIT_OK = 0
EXIT_INVALID = EXIT_REFUSED = 1  # a file that is no module, or an interpreter that can't be started
EXIT_UNDELIVERED = 3  # results that no controller had acknowledged when the time was up


def run(config: RunnerConfig, files: DescribedFiles) -> int:
    """Host the modules until SIGTERM or SIGINT; the exit code. Problems of the files go to stderr, line by line.

    `files`: those of `config`, whose children are at work already.
    """
    # docs/decisions/0005: the collector cost a tenth of a burst, and a fifth of what reading modules takes
    gc.disable()
    try:
        modules = load_modules(files)
    except (DescribeFailed, InvalidFile) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_INVALID
    spare_memory()
    gc.enable()
    return uvloop.run(host(config, modules))


def load_modules(files: DescribedFiles) -> list[LoadedModule]:
    """What each file declares; all problems are told at once. Raises DescribeFailed and InvalidFile."""
    loaded: list[LoadedModule] = []
    problems = []
    for program, described in files:
        try:
            loaded.append(read_module(program, described))
        except InvalidFile as error:
            problems += error.problems
    if problems:
        raise InvalidFile(problems)
    names = [item.module.name for item in loaded]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DescribeFailed(f"two files would both be module {repeated!r}: give them to different runners, or rename")
    return loaded


def hello_message(modules: list[LoadedModule], config: RunnerConfig, grant: str = "") -> runner_pb2.RunnerMessage:
    """Hello, under a new id, which begins with the grant that the runner's certificate names."""
    hostname = socket.gethostname()
    known_as = f"{grant}.{hostname}" if grant else hostname
    return runner_pb2.RunnerMessage(
        hello=runner_pb2.Hello(
            runner_id=f"{known_as}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            hostname=hostname,
            pid=os.getpid(),
            version=version("cronring"),
            modules=[
                runner_pb2.HostedModule(digest=item.digest, schema=module_message(item.module)) for item in modules
            ],
            sync_places=config.sync_children,
            async_places=config.async_runs,
        )
    )


def module_lanes(module: Module, config: RunnerConfig) -> ModuleLanes:
    """Its places, as ModuleHost has children for them."""
    sync_verbs = frozenset(verb.name for verb in module.verbs if not verb.is_async)
    return ModuleLanes(sync_verbs, config.sync_children, config.async_runs, config.sync_children)


async def host(config: RunnerConfig, modules: list[LoadedModule]) -> int:
    """Connect, and run what is dispatched until a signal has been answered."""
    try:
        trust = await establish(config, log)
    except CertificateError as error:
        log.error("runner_not_let_in", reason=str(error))
        return EXIT_REFUSED
    if os.geteuid() == 0 and config.run_as is None and trust.certificates is not None:
        log.warning("verbs_run_as_root", remedy="--run-as USER, or start the runner as another user")
    hello = hello_message(modules, config, trust.grant)
    settings = RunnerSettings(drain_ns=int(config.drain_timeout * SECOND_NS))
    rotation = random.randrange(1_000)  # noqa: S311 - guards nothing # nosec B311
    lanes = tuple(module_lanes(item.module, config) for item in modules)
    service = RunnerService(settings, trust, hello, config.sync_children, rotation, lanes)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, service.drain)
    try:
        log.info("runner_started", runner=hello.hello.runner_id, modules=[item.module.name for item in modules])
        undelivered = await service.run([(item.module, item.program) for item in modules])
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(signum)
    if undelivered:
        log.error("results_undelivered", results=undelivered)
        return EXIT_UNDELIVERED
    log.info("runner_stopped")
    return EXIT_OK

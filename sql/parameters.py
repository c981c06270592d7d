"""A record for each statement of `sql/queries/*.sql`: made by `make parameters`, don't edit."""

from collections.abc import Sequence

from cronring.sql.records import Statement


class ActivateDeployment(Statement):
    min_replicas: int
    now: int
    deployment_id: int


class AddActions(Statement):
    at: int | None
    job_ids: Sequence[int | None]
    deployment_ids: Sequence[int | None]
    execution_ids: Sequence[int | None]
    actions: Sequence[str]
    actors: Sequence[str]
    notes: Sequence[str]
    details: Sequence[str]
    templates: Sequence[str | None]


class AddDeliveries(Statement):
    webhook_ids: Sequence[int]
    event_ids: Sequence[str]
    events: Sequence[str]
    jobs: Sequence[str]
    bodies: Sequence[str]


class AddIntervalJob(Statement):
    job_id: int
    interval_id: str
    namespace: str
    source_id: str | None
    terms: str


class AddMessages(Statement):
    execution_ids: Sequence[int]
    ticks: Sequence[int]


class AddPartition(Statement):
    ahead_ms: int


class AddRetries(Statement):
    execution_ids: Sequence[int]
    ticks: Sequence[int]


class AddRetrying(Statement):
    job_ids: Sequence[int]
    ticks: Sequence[int]
    attempts: Sequence[int]


class AddSkips(Statement):
    controller_id: str
    job_ids: Sequence[int]
    reasons: Sequence[str]
    first_ticks: Sequence[int]
    last_ticks: Sequence[int]
    tick_counts: Sequence[int]


class AddToClosedBooks(Statement):
    cut_job_ids: Sequence[int]
    cut_reasons: Sequence[str]
    cut_tick_counts: Sequence[int]
    job_ids: Sequence[int]
    due: Sequence[int]


class AddWebhook(Statement):
    name: str
    origin: str
    encrypted: str
    events: Sequence[str]
    reasons: Sequence[str]
    outcomes: Sequence[str]
    namespace: str
    module: str
    job: str
    labels: str
    actor: str


class AdoptExecutions(Statement):
    from_ids: Sequence[str]
    runner_ids: Sequence[str] | None
    controller_id: str


class AdvanceBackfills(Statement):
    activation_ids: Sequence[int]
    next_ticks: Sequence[int]


class BeginRequest(Statement):
    principal: str
    method: str
    key: str
    request_hash: bytes
    kept_ms: int


class BindExecutions(Statement):
    execution_ids: Sequence[int]
    places: Sequence[int]


class BindJobs(Statement):
    job_ids: Sequence[int]


class BoundDiagnosis(Statement): ...


class BringCronJobsBack(Statement):
    deployment_id: int
    now: int
    job_ids: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]


class CancelExecutionsOfJobs(Statement):
    job_ids: Sequence[int]
    actor: str
    note: str


class CarryCronJobsOver(Statement):
    deployment_id: int
    job_ids: Sequence[int]
    timeouts_ms: Sequence[int | None]
    on_disconnects: Sequence[str | None]
    payloads: Sequence[str | None]
    rescheduled: Sequence[bool]
    schedules: Sequence[str]
    anchors: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    policies: Sequence[str]
    concurrencies: Sequence[int]
    pause_afters: Sequence[int]
    paused_ticks: Sequence[int | None]
    ahead_froms: Sequence[int | None]
    ahead_untils: Sequence[int | None]
    orphaned_ticks: Sequence[int | None]
    closes_ats: Sequence[int | None]


class ClaimAgain(Statement):
    controller_id: str


class ClaimDeliveries(Statement):
    busy_limits: Sequence[int]
    busy_ids: Sequence[int]
    each_limit: int
    limit: int
    held_ms: int
    controller_id: str


class ClearClosings(Statement): ...


class ClearFailing(Statement):
    job_ids: Sequence[int]


class CloseBooks(Statement):
    job_ids: Sequence[int]
    closes_ats: Sequence[int]


class CloseSchema(Statement): ...


class CountChosenJobs(Statement):
    labels: str
    module: str
    namespaces: Sequence[str] | None
    namespace: str
    verb: str
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    statuses: Sequence[str]


class CountDeployments(Statement):
    namespace: str
    module: str
    active_only: bool
    namespaces: Sequence[str] | None


class CountEncrypted(Statement): ...


class CountExecutions(Statement):
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_id: int
    above_id: int


class CountIntervalExecutions(Statement):
    job_id: int


class CountIntervalJobs(Statement):
    namespace: str
    source_id: str | None


class CountIntervalStatuses(Statement):
    namespace: str


class CountJobExecutions(Statement):
    job_ids: Sequence[int]
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    above_id: int


class CountJobTicks(Statement):
    job_ids: Sequence[int]
    since: int | None
    until: int | None
    looked: int


class CountJobs(Statement):
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    statuses: Sequence[str]


class CountLimits(Statement):
    namespace: str | None
    namespaces: Sequence[str] | None


class CountPlaces(Statement):
    limit_id: int


class CountQueues(Statement):
    namespace: str | None
    namespaces: Sequence[str] | None


class CountRequestKeys(Statement):
    principal: str
    most: int


class CountRunnerGrants(Statement):
    with_revoked: bool
    namespaces: Sequence[str] | None


class CountRunningOfOthers(Statement):
    namespace: str
    module: str
    deployment_id: int


class CountRuns(Statement):
    job_ids: Sequence[int]
    after_ticks: Sequence[int]
    late_after_us: int
    until_tick: int
    limit: int


class CountSessions(Statement):
    with_ended: bool
    own: str
    namespaces: Sequence[str] | None


class CountSets(Statement):
    namespace: str
    namespaces: Sequence[str] | None


class CountSkips(Statement):
    job_ids: Sequence[int]
    after_ticks: Sequence[int]
    until_tick: int


class CountTemplates(Statement):
    namespace: str
    namespaces: Sequence[str] | None


class CountTokens(Statement):
    with_revoked: bool
    namespaces: Sequence[str] | None


class CountTroubledExecutions(Statement):
    outcomes: Sequence[str]
    since: int | None
    until: int | None
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_id: int
    above_id: int


class CountUnsealed(Statement):
    limit: int


class CountWaiting(Statement): ...


class CountWebhooks(Statement): ...


class CountWorkspace(Statement):
    labels: str
    namespace: str
    workspace: str


class CreateApiJobs(Statement):
    actor: str
    now: int
    set_name: str
    keys: Sequence[str]
    namespaces: Sequence[str]
    modules: Sequence[str]
    verbs: Sequence[str]
    slots: Sequence[int]
    deployment_ids: Sequence[int]
    schedules: Sequence[str]
    anchors: Sequence[int]
    timeouts_ms: Sequence[int]
    on_disconnects: Sequence[str]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    policies: Sequence[str]
    concurrencies: Sequence[int]
    pause_afters: Sequence[int]
    payloads: Sequence[str]
    labels: Sequence[str]
    templates: Sequence[str]


class CreateBackfill(Statement):
    run_at: int
    actor: str
    tick: int
    until_tick: int
    beside: bool
    again: bool
    job_id: int


class CreateCronJobs(Statement):
    namespace: str
    module: str
    deployment_id: int
    now: int
    keys: Sequence[str]
    verbs: Sequence[str]
    slots: Sequence[int]
    schedules: Sequence[str]
    anchors: Sequence[int]
    timeouts_ms: Sequence[int]
    on_disconnects: Sequence[str]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    policies: Sequence[str]
    concurrencies: Sequence[int]
    pause_afters: Sequence[int]
    payloads: Sequence[str]


class CreateDeployment(Statement):
    namespace: str
    module: str
    key: str
    digest: str
    schema_text: str
    async_verbs: Sequence[str]
    now: int
    fingerprint: str


class CreateMigrations(Statement): ...


class CreateRetry(Statement):
    tick: int
    attempt: int
    payload: str | None
    beside: bool
    of_schedule: bool
    actor: str
    counted_before: bool
    job_id: int


class CreateRunnerGrant(Statement):
    name: str
    namespace: str
    modules: Sequence[str]
    may_activate: bool
    secret_hash: bytes | None
    uses: int | None
    actor: str
    lasts_ms: int | None


class CreateSession(Statement):
    former_hash: bytes | None
    principal: str
    others: int
    secret_hash: bytes
    token_id: int | None
    token_hash: bytes | None
    grants: str | None
    issuer: str
    origin: str
    idle_ms: int
    lasts_ms: int


class CreateTemplate(Statement):
    namespace: str
    name: str
    description: str
    schedule: str
    anchor: int | None
    policy: str
    payload: str
    labels: str
    timeout_ms: int
    on_disconnect: str
    actor: str


class CreateToken(Statement):
    name: str
    secret_hash: bytes
    grants: str
    actor: str
    lasts_ms: int | None


class CutAuditChain(Statement):
    kept_ms: int
    limit: int


class CutSkips(Statement):
    skip_ids: Sequence[int]
    first_ticks: Sequence[int]
    tick_counts: Sequence[int]


class DeactivateDeployment(Statement):
    now: int
    deployment_id: int


class DecideExecutions(Statement):
    execution_ids: Sequence[int]
    ticks: Sequence[int]
    error_types: Sequence[str | None]
    error_messages: Sequence[str | None]


class DeleteActivation(Statement):
    activation_id: int
    job_id: int


class DeleteMessages(Statement):
    execution_ids: Sequence[int]


class DeleteTemplate(Statement):
    namespace: str
    name: str
    template_id: int | None
    revision: int | None


class DisableWebhook(Statement):
    reason: str
    webhook_id: int


class DropActivations(Statement):
    activation_ids: Sequence[int]
    failed_job_ids: Sequence[int]
    failures: Sequence[int]


class DropCutRows(Statement): ...


class DropGone(Statement): ...


class DropIdleValues(Statement): ...


class DropValues(Statement):
    limit_id: int


class DropWorkspaceMessages(Statement):
    namespace: str
    workspace: str
    limit: int


class EnableWebhook(Statement):
    name: str


class EndAnyRun(Statement):
    execution_ids: Sequence[int]
    job_ids: Sequence[int]
    claimed_ats: Sequence[int]
    outcomes: Sequence[str]
    started_ats: Sequence[int]
    ended_ats: Sequence[int]
    error_types: Sequence[str | None]
    error_messages: Sequence[str | None]
    outputs: Sequence[str | None]
    revisions: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    retry_ats: Sequence[int | None]
    anchors: Sequence[int | None]
    stacks: Sequence[str | None]
    cpu_us: Sequence[int | None]
    memory_peak_bytes: Sequence[int | None]
    memory_shared: Sequence[bool | None]
    metrics: Sequence[str | None]
    missed: Sequence[int]


class EndCronJob(Statement):
    execution_ids: Sequence[int]
    job_ids: Sequence[int]
    claimed_ats: Sequence[int]
    started_ats: Sequence[int]
    ended_ats: Sequence[int]
    outputs: Sequence[str | None]
    revisions: Sequence[int]
    ticks: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    cpu_us: Sequence[int | None]
    memory_peak_bytes: Sequence[int | None]
    memory_shared: Sequence[bool | None]
    metrics: Sequence[str | None]


class EndRequest(Statement):
    answer: bytes
    principal: str
    method: str
    key: str
    begun_at: int


class EnqueueCronJobs(Statement):
    whole: bool
    job_ids: Sequence[int]
    expected_ticks: Sequence[int]
    ticks: Sequence[int]
    run_ats: Sequence[int]
    deployments: Sequence[str]
    triggers: Sequence[str]
    missed: Sequence[int]
    missed_after: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    revisions: Sequence[int]
    controller_id: str


class ExtendLease(Statement):
    lease: int
    namespace: str
    hold_ms: int


class FillClosings(Statement):
    runs: int
    boundary: int


class FillHistories(Statement):
    job_ids: Sequence[int]
    histories_ms: Sequence[int]
    runs: Sequence[int]


class FindActive(Statement):
    keys: Sequence[str]


class FindChosenByKey(Statement):
    labels: str
    module: str
    namespaces: Sequence[str] | None
    namespace: str
    verb: str
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    statuses: Sequence[str]
    after_key: str
    limit: int


class FindChosenJobs(Statement):
    labels: str
    module: str
    namespaces: Sequence[str] | None
    namespace: str
    verb: str
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    statuses: Sequence[str]
    after_id: int
    limit: int


class FindDeadLetters(Statement):
    namespace: str
    queue: str
    ids: Sequence[int] | None
    limit: int


class FindDeadLettersOfWorkspace(Statement):
    namespace: str
    queue: str
    workspace: str
    ids: Sequence[int] | None
    limit: int


class FindDeployment(Statement):
    key: str


class FindExecutionBefore(Statement):
    instant: int


class FindExecutionsEnd(Statement):
    before_id: int
    above_id: int
    since: int | None
    until: int | None
    looked: int


class FindIntervalJobs(Statement):
    namespace: str
    source_id: str | None
    limit: int
    offset: int


class FindIntervalJobsOfStatus(Statement):
    offset: int
    limit: int
    namespace: str
    source_id: str | None
    status: str


class FindJobExecutionsEnd(Statement):
    job_ids: Sequence[int]
    before_tick: int
    before_attempt: int
    before_job: int
    since: int | None
    until: int | None
    looked: int


class FindJobIds(Statement):
    keys: Sequence[str]


class FindJobs(Statement):
    after_id: int
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    statuses: Sequence[str]
    limit: int


class FindOverdue(Statement):
    overdue_ms: int
    limit: int


class FindOverdueByDefault(Statement):
    slots: Sequence[int]
    late_after_ms: int
    limit: int


class FindPeers(Statement): ...


class FindPlaces(Statement):
    job_ids: Sequence[int]


class FindTroubledEnd(Statement):
    outcomes: Sequence[str]
    before_id: int
    above_id: int
    since: int | None
    until: int | None
    looked: int


class FindWorkspaceJobs(Statement):
    labels: str
    namespace: str
    going: bool
    limit: int


class FinishDeliveries(Statement):
    delivery_ids: Sequence[int]
    attempts: Sequence[int]
    states: Sequence[str]
    waits_ms: Sequence[int]
    statuses: Sequence[int | None]
    errors: Sequence[str]


class FinishMessages(Statement):
    lease: int
    namespace: str
    ids: Sequence[int]
    output: str


class FoldFigures(Statement):
    folded_id: int
    until_id: int


class FoldGone(Statement):
    history_ms: int
    limit: int


class FollowExecutions(Statement):
    after_execution_id: int
    execution_ids: Sequence[int]
    from_tick: int
    first_execution_ids: Sequence[int]
    last_execution_ids: Sequence[int]
    looked_at: int
    hard_grace_ms: int
    near_percent: int
    late_after_ms: int


class FollowSkips(Statement):
    after_skip_id: int
    first_skip_ids: Sequence[int]
    last_skip_ids: Sequence[int]


class FollowTicks(Statement):
    execution_ids: Sequence[int]
    job_ids: Sequence[int]
    ticks: Sequence[int]


class ForgetActions(Statement):
    history_ms: int


class ForgetActivations(Statement):
    job_ids: Sequence[int]


class ForgetDeadLetters(Statement): ...


class ForgetDeliveries(Statement):
    kept_ms: int
    limit: int


class ForgetEmptySet(Statement):
    namespace: str
    name: str


class ForgetIdentities(Statement):
    kept_ms: int


class ForgetLanes(Statement): ...


class ForgetListeners(Statement): ...


class ForgetLives(Statement):
    history_ms: int


class ForgetNotices(Statement): ...


class ForgetRemovedJobs(Statement): ...


class ForgetRequest(Statement):
    principal: str
    method: str
    key: str
    begun_at: int


class ForgetRequests(Statement): ...


class ForgetRetries(Statement):
    job_id: int


class ForgetVerbCalls(Statement): ...


class FormatCreateSchema(Statement):
    schema: str


class FormatGrants(Statement):
    role: str


class GetActionsBefore(Statement):
    job_id: int
    instant: int
    limit: int


class GetActivations(Statement):
    slots: Sequence[int]
    window_ms: int


class GetActivationsById(Statement):
    activation_ids: Sequence[int]


class GetActiveModule(Statement):
    namespace: str
    module: str


class GetAddressee(Statement):
    name: str


class GetAsyncVerbs(Statement): ...


class GetAttempts(Statement):
    job_id: int
    tick: int
    execution_id: int


class GetAttemptsOfTick(Statement):
    job_id: int
    tick: int
    limit: int


class GetAuditChain(Statement):
    limit: int


class GetAuditHash(Statement):
    seq: int


class GetBoundary(Statement):
    history_ms: int


class GetChanges(Statement):
    after_execution_id: int
    first_execution_ids: Sequence[int]
    last_execution_ids: Sequence[int]
    execution_ids: Sequence[int]
    first_tick: int
    last_tick: int
    after_skip_id: int
    first_skip_ids: Sequence[int]
    last_skip_ids: Sequence[int]
    since: int


class GetClosedBooks(Statement):
    job_ids: Sequence[int]


class GetClosingSpans(Statement): ...


class GetConnectionUse(Statement): ...


class GetCronJobs(Statement):
    slots: Sequence[int]
    window_ms: int


class GetCronJobsById(Statement):
    job_ids: Sequence[int]


class GetDayFigures(Statement):
    starts: Sequence[int]
    ends: Sequence[int]
    job_id: int
    limit: int


class GetDefaults(Statement): ...


class GetDeployment(Statement):
    lost_after_ms: int
    key: str


class GetExecution(Statement):
    execution_id: int


class GetExecutionChanges(Statement):
    after_execution_id: int
    first_execution_ids: Sequence[int]
    last_execution_ids: Sequence[int]
    execution_ids: Sequence[int]
    first_tick: int
    last_tick: int


class GetFailing(Statement):
    job_ids: Sequence[int]


class GetFateOfTick(Statement):
    job_id: int
    tick: int


class GetFirstLife(Statement): ...


class GetFollowed(Statement):
    keys: Sequence[str]


class GetFollowers(Statement):
    activation_ids: Sequence[int]


class GetHandChanges(Statement):
    keys: Sequence[str]
    name: str


class GetHistoryPolicies(Statement): ...


class GetHistoryState(Statement): ...


class GetIntervalExecution(Statement):
    execution_id: int
    namespace: str


class GetIntervalFigures(Statement):
    namespace: str


class GetIntervalJob(Statement):
    interval_id: str
    namespace: str


class GetIntervalJobs(Statement):
    job_ids: Sequence[int]


class GetJob(Statement):
    key: str


class GetJobFigures(Statement):
    key: str


class GetJobGroups(Statement):
    namespaces: Sequence[str] | None
    limit: int


class GetJobId(Statement):
    key: str


class GetJobIds(Statement):
    key: str


class GetJobsById(Statement):
    job_ids: Sequence[int]


class GetJobsByKey(Statement):
    keys: Sequence[str]


class GetJobsForExecutions(Statement):
    labels: str
    module: str
    namespaces: Sequence[str] | None
    namespace: str
    verb: str
    limit: int


class GetJobsOfDeployments(Statement):
    deployment_ids: Sequence[int]


class GetJoin(Statement):
    secret_hash: bytes


class GetLabelFigures(Statement):
    labels: str
    namespaces: Sequence[str] | None


class GetLastIds(Statement): ...


class GetLatestStarts(Statement):
    job_ids: Sequence[int]
    last_ticks: Sequence[int]


class GetLeft(Statement):
    keys: Sequence[str]
    now: int


class GetLost(Statement):
    lost_after_ms: int


class GetMigrations(Statement): ...


class GetModuleDeployments(Statement):
    namespace: str
    module: str
    digest: str


class GetModuleJobs(Statement):
    low_key: str
    high_key: str
    namespace: str
    module: str
    due_until: int | None


class GetNewerMigrations(Statement):
    version: int


class GetNotifierTurn(Statement):
    controller_id: str


class GetNow(Statement): ...


class GetOverdueExecutions(Statement): ...


class GetOverdueJobs(Statement):
    slots: Sequence[int]
    delay_ms: int
    limit: int


class GetPageKey(Statement): ...


class GetPartition(Statement):
    from_at: int
    until_at: int


class GetPlaces(Statement):
    lost_after_ms: int


class GetQueue(Statement):
    namespace: str
    queue: str


class GetQueueFigures(Statement):
    most: int
    queues: int


class GetQueueReports(Statement):
    known: Sequence[int]
    controller_id: str
    limit: int


class GetReadyQueues(Statement):
    namespaces: Sequence[str]
    queues: Sequence[str]


class GetRecent(Statement):
    boundary: int


class GetRecentFigures(Statement):
    late_since: int
    above_id: int
    looked: int
    since: int
    namespaces: Sequence[str] | None


class GetRequest(Statement):
    given_up_ms: int
    principal: str
    method: str
    key: str


class GetRetriesGivenUp(Statement): ...


class GetRole(Statement): ...


class GetRunAfter(Statement):
    job_id: int
    instant: int


class GetRunBefore(Statement):
    job_id: int
    instant: int


class GetRunnerGrant(Statement):
    name: str


class GetRunsInOrder(Statement):
    job_id: int
    after_tick: int
    after_attempt: int
    until_tick: int
    limit: int


class GetSchedulerFigures(Statement):
    namespaces: Sequence[str] | None


class GetSchema(Statement):
    schema: str


class GetServerSettings(Statement):
    names: Sequence[str]


class GetServerState(Statement): ...


class GetSession(Statement):
    session_id: int


class GetSet(Statement):
    namespace: str
    name: str


class GetSkipAt(Statement):
    job_id: int
    tick: int


class GetSkipBefore(Statement):
    job_id: int
    instant: int


class GetSkippedTicks(Statement):
    job_ids: Sequence[int]


class GetSkipsInOrder(Statement):
    job_id: int
    after_tick: int
    after_id: int
    until_tick: int
    limit: int


class GetSpans(Statement):
    job_ids: Sequence[int]
    since: int
    after_job_id: int
    after_revision: int
    limit: int


class GetSpansAround(Statement):
    job_id: int
    instant: int
    limit: int


class GetSpecs(Statement):
    keys: Sequence[str]


class GetStandings(Statement):
    key: str
    after_id: int
    namespaces: Sequence[str] | None
    limit: int


class GetSubjects(Statement):
    lost_after_ms: int
    key: str


class GetSubscriptions(Statement): ...


class GetTemplate(Statement):
    namespace: str
    name: str


class GetTimeline(Statement): ...


class GetToken(Statement):
    name: str


class GetTwins(Statement):
    after_tick: int
    until_tick: int
    limit: int


class GetUnfinished(Statement):
    execution_ids: Sequence[int]
    controller_id: str | None


class GetUnfinishedIds(Statement): ...


class GetUnfolded(Statement):
    job_id: int


class GetUnsealedRows(Statement):
    limit: int
    bytes_max: int


class GetVerbCall(Statement):
    number: int
    execution_id: int


class GetWaiting(Statement):
    job_id: int
    limit: int


class GetZoneData(Statement): ...


class GivePlacesBack(Statement):
    limit_ids: Sequence[int]
    places: Sequence[int]


class HasMigrations(Statement): ...


class HastenRetry(Statement):
    actor: str
    payload: str | None
    job_id: int
    tick: int


class HoldDrill(Statement):
    controller_id: str
    for_ms: int
    forced: bool


class KeepVerbCall(Statement):
    execution_id: int
    runner_id: str
    number: int


class LabelJobs(Statement):
    actor: str
    job_ids: Sequence[int]
    labels: Sequence[str | None]


class LeaveNotifier(Statement):
    controller_id: str


class LeaveRunner(Statement):
    runner_id: str


class ListActions(Statement):
    before_id: int
    since: int | None
    namespaces: Sequence[str] | None
    limit: int


class ListActivations(Statement):
    job_id: int
    activation_id: int | None
    after_run_at: int | None
    after_id: int
    limit: int | None


class ListAuditLog(Statement):
    before_at: int
    before_id: int
    since: int
    namespaces: Sequence[str] | None
    namespace: str
    principal: str
    method: str
    subject: str
    refusals: bool
    changes: bool
    limit: int


class ListBooks(Statement):
    keys: Sequence[str]
    namespaces: Sequence[str] | None
    before: int | None
    last: int


class ListControllers(Statement): ...


class ListDeadLetters(Statement):
    namespace: str
    queue: str
    after_id: int
    limit: int


class ListDeadLettersOfWorkspace(Statement):
    namespace: str
    queue: str
    workspace: str
    after_id: int
    limit: int


class ListDeeds(Statement):
    since: int
    until: int
    looked: int
    namespaces: Sequence[str] | None


class ListDeliveries(Statement):
    before_id: int
    state: str
    job: str
    namespaces: Sequence[str] | None
    limit: int
    webhook: str


class ListDeploymentActions(Statement):
    deployment_ids: Sequence[int]
    before_id: int
    since: int | None
    limit: int


class ListDeploymentRunners(Statement):
    lost_after_ms: int


class ListDeployments(Statement):
    lost_after_ms: int
    before_id: int
    namespace: str
    module: str
    active_only: bool
    namespaces: Sequence[str] | None
    limit: int


class ListDue(Statement):
    within_ms: int
    namespaces: Sequence[str] | None
    limit: int


class ListEncryptedOtherwise(Statement):
    key_id: str
    after_id: int
    limit: int


class ListExecutions(Statement):
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_id: int
    above_id: int
    limit: int


class ListFullLimits(Statement): ...


class ListIndexes(Statement): ...


class ListIntervalExecutions(Statement):
    job_id: int
    limit: int
    offset: int


class ListJobActions(Statement):
    job_ids: Sequence[int]
    before_id: int
    since: int | None
    limit: int


class ListJobExecutions(Statement):
    job_ids: Sequence[int]
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_tick: int
    above_tick: int
    above_id: int
    before_attempt: int
    before_job: int
    above_attempt: int
    above_job: int
    limit: int


class ListJobs(Statement):
    after_key: str
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    statuses: Sequence[str]
    outcomes: Sequence[str]
    contains: Sequence[str]
    keys: Sequence[str]
    labels: str
    limit: int


class ListLane(Statement):
    namespace: str
    queue: str
    workspace: str
    after_run_at: int | None
    after_id: int
    limit: int


class ListLateAt(Statement):
    above_id: int
    looked: int
    since: int
    at: int
    late_ms: int
    namespaces: Sequence[str] | None
    limit: int


class ListLeases(Statement): ...


class ListLimits(Statement):
    namespace: str | None
    module: str | None
    label: str | None
    namespaces: Sequence[str] | None
    after_namespace: str
    after_module: str
    after_label: str
    limit: int | None


class ListLives(Statement):
    since: int
    until: int
    limit: int
    lost_after_ms: int


class ListMessages(Statement):
    namespace: str
    queue: str
    after_id: int
    limit: int


class ListOpenTransactions(Statement): ...


class ListOrphans(Statement): ...


class ListOverdueExecutions(Statement):
    overdue_ms: int


class ListOverdueTicks(Statement):
    lost_after_ms: int
    overdue_ms: int


class ListPreparedTransactions(Statement): ...


class ListQueues(Statement):
    most: int
    namespace: str | None
    queue: str | None
    namespaces: Sequence[str] | None
    after_namespace: str
    after_queue: str
    limit: int


class ListReplicationSlots(Statement): ...


class ListRunnerGrants(Statement):
    after_id: int
    with_revoked: bool
    namespaces: Sequence[str] | None
    limit: int


class ListRunnerLeases(Statement): ...


class ListRunners(Statement):
    lost_after_ms: int


class ListRunningAt(Statement):
    above_id: int
    until_id: int
    at: int
    namespaces: Sequence[str] | None
    limit: int


class ListRunningJobs(Statement):
    limit_id: int


class ListSessions(Statement):
    after_id: int
    with_ended: bool
    own: str
    namespaces: Sequence[str] | None
    limit: int


class ListSetKeys(Statement):
    namespace: str
    name: str
    after_key: str
    limit: int


class ListSets(Statement):
    after_namespace: str
    after_name: str
    namespace: str
    namespaces: Sequence[str] | None
    limit: int


class ListTableStates(Statement): ...


class ListTemplateActions(Statement):
    template: str
    before_id: int
    since: int | None
    limit: int


class ListTemplates(Statement):
    after_namespace: str
    after_name: str
    namespace: str
    namespaces: Sequence[str] | None
    limit: int


class ListTickRuns(Statement):
    job_id: int
    first_tick: int
    last_tick: int


class ListTokens(Statement):
    after_id: int
    with_revoked: bool
    namespaces: Sequence[str] | None
    limit: int


class ListTroubledExecutions(Statement):
    outcomes: Sequence[str]
    since: int | None
    until: int | None
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_id: int
    above_id: int
    limit: int


class ListTroubles(Statement):
    outcomes: Sequence[str]
    above_id: int
    since: int
    until: int
    namespaces: Sequence[str] | None
    limit: int


class ListUnbound(Statement):
    limit_id: int


class ListWebhookStates(Statement): ...


class ListWebhooks(Statement):
    name: str
    after: str
    limit: int | None


class ListWorkspaces(Statement):
    namespace: str | None
    namespaces: Sequence[str] | None
    after_namespace: str
    after_workspace: str
    limit: int


class LockCronJobs(Statement):
    low_key: str
    high_key: str
    namespace: str
    module: str


class LockCutSkips(Statement): ...


class LockDefaults(Statement): ...


class LockJob(Statement):
    key: str


class LockJobOfExecution(Statement):
    execution_id: int


class LockJobsById(Statement):
    job_ids: Sequence[int]


class LockJobsOfLimit(Statement):
    namespace: str
    module: str


class LockLimits(Statement): ...


class LockMessages(Statement):
    execution_ids: Sequence[int]


class LockMigrations(Statement):
    schema: str


class LockModule(Statement):
    namespaced_module: str


class LockNotifier(Statement): ...


class LockPlaces(Statement):
    limit_ids: Sequence[int]


class LockQueue(Statement):
    namespace: str
    queue: str


class LockSeenRunners(Statement):
    runner_ids: Sequence[str]
    lost_after_ms: int


class LockWebhook(Statement):
    name: str


class MakePlaces(Statement):
    job_ids: Sequence[int]


class MakeQueue(Statement):
    namespace: str
    module: str
    key: str


class MarkCancelled(Statement):
    actor: str
    note: str
    execution_id: int


class MoveAnchors(Statement):
    job_ids: Sequence[int]
    anchors: Sequence[int]
    closes_ats: Sequence[int | None]


class MoveAuditHead(Statement):
    seq: int
    hash: bytes


class MoveFolding(Statement):
    until_id: int
    last_id: int


class NoteRefusals(Statement):
    controller_id: str
    ages_ms: Sequence[int]
    refused: Sequence[str]
    times: Sequence[int]
    principals: Sequence[str]
    methods: Sequence[str]
    origins: Sequence[str]
    whys: Sequence[str]


class NoteZoneData(Statement):
    version: str


class NotifyJobs(Statement):
    payload: str


class NotifyWebhooks(Statement): ...


class OpenBooks(Statement):
    job_ids: Sequence[int]
    opens_ats: Sequence[int]


class OrderJobs(Statement):
    actor: str
    now: int
    job_ids: Sequence[int]
    forgets: Sequence[bool]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    paused_ats: Sequence[int | None]
    paused_ticks: Sequence[int | None]
    paused_untils: Sequence[int | None]
    paused_bys: Sequence[str | None]
    paused_notes: Sequence[str | None]
    cancelled_ats: Sequence[int | None]
    cancelled_bys: Sequence[str | None]
    cancelled_notes: Sequence[str | None]
    ahead_froms: Sequence[int | None]
    ahead_untils: Sequence[int | None]
    orphaned_ticks: Sequence[int | None]


class OrphanCronJobs(Statement):
    now: int
    job_ids: Sequence[int]
    orphaned_ticks: Sequence[int | None]


class OwnJobs(Statement):
    name: str
    actor: str
    job_ids: Sequence[int]
    was: str


class PauseFailing(Statement):
    job_ids: Sequence[int]


class PutMessage(Statement):
    queue: str
    payload: str
    workspace: str
    namespace: str
    not_before: int | None


class RankExecutions(Statement):
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    sort: str
    before_id: int
    above_id: int
    below_value: int
    below_id: int
    limit: int


class RankJobExecutions(Statement):
    job_ids: Sequence[int]
    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    sort: str
    below_value: int
    below_id: int
    above_id: int
    limit: int


class RankJobs(Statement):
    job_ids: Sequence[int]
    sort: str
    below_value: int
    below_id: int
    limit: int


class RankTroubledExecutions(Statement):
    outcomes: Sequence[str]
    since: int | None
    until: int | None
    runner: str
    of_jobs: bool
    namespaces: Sequence[str] | None
    namespace: str
    module: str
    verb: str
    labels: str
    before_id: int
    above_id: int
    sort: str
    below_value: int
    below_id: int
    limit: int


class ReadAuditChain(Statement):
    after_seq: int
    limit: int
    bytes_max: int


class RecogniseDeployment(Statement):
    namespace: str
    module: str
    digest: str
    fingerprint: str


class RecordChanges(Statement):
    principal: str
    method: str
    origin: str
    remark: str
    controller_id: str
    namespaces: Sequence[str]
    subjects: Sequence[str]
    befores: Sequence[str | None]
    afters: Sequence[str | None]


class RecordMaintenance(Statement): ...


class RecordMigration(Statement):
    version: int
    name: str
    checksum: str
    works_with: int | None


class Redeliver(Statement):
    name: str
    delivery_id: int


class RegisterRunner(Statement):
    runner_id: str
    hostname: str
    pid: int
    version: str
    deployments: Sequence[str]
    sync_places: int
    async_places: int


class ReleaseMessages(Statement):
    lease: int
    namespace: str
    ids: Sequence[int] | None


class RememberFingerprint(Statement):
    fingerprint: str
    deployment_id: int


class RemoveController(Statement):
    controller_id: str


class RemoveCronJobs(Statement):
    now: int
    job_ids: Sequence[int]
    closes_ats: Sequence[int]


class RemoveDeadLetters(Statement):
    ids: Sequence[int]


class RemoveWebhook(Statement):
    name: str


class RenewLease(Statement):
    controller_id: str
    grpc_address: str
    peer_address: str
    http_address: str
    pid: int
    version: str
    zone_data: str
    draining: bool
    lease_ms: int
    runner_ids: Sequence[str]
    cancelling: Sequence[int]
    lost_after_ms: int


class ReplaceEncrypted(Statement):
    after: str
    id: int
    before: str


class ReplayDeadLetters(Statement):
    ids: Sequence[int]


class RetryMessages(Statement):
    lease: int
    namespace: str
    ids: Sequence[int]
    error: str
    delay_ms: int | None
    error_type: str
    last: bool


class RevokeRunnerGrant(Statement):
    actor: str
    grant_id: int


class RevokeSession(Statement):
    actor: str
    session_id: int


class RevokeSessionOf(Statement):
    secret_hash: bytes


class RevokeToken(Statement):
    actor: str
    token_id: int


class RunJobsByHand(Statement):
    run_at: int
    actor: str
    payload: str | None
    of_schedule: bool
    job_ids: Sequence[int]
    ticks: Sequence[int]


class SaveNotifier(Statement):
    controller_id: str
    lease_ms: int
    position: str


class SealRows(Statement):
    ids: Sequence[int]
    seqs: Sequence[int]
    hashes: Sequence[bytes]


class SeedFailing(Statement): ...


class SetDefaults(Statement):
    timeout_ms: int | None
    late_after_ms: int | None
    retries: int
    actor: str
    note: str


class SetFailing(Statement):
    job_ids: Sequence[int]
    execution_ids: Sequence[int]
    ticks: Sequence[int]


class SetIntervalJob(Statement):
    source_id: str | None
    terms: str
    job_id: int


class SetLate(Statement):
    job_ids: Sequence[int]
    ticks: Sequence[int]


class SetLimit(Statement):
    namespace: str
    module: str
    label: str
    max_concurrent: int | None
    actor: str
    note: str


class SetMinReplicas(Statement):
    min_replicas: int
    deployment_id: int


class SetPosition(Statement):
    position: str


class SetQueue(Statement):
    namespace: str
    queue: str
    max_deliveries: int
    on_retry: str
    dead_kept_days: int
    actor: str
    note: str


class SetSession(Statement):
    names: Sequence[str]
    values: Sequence[str]


class SetValues(Statement):
    max_concurrent: int
    limit_id: int


class SkipTicks(Statement):
    job_ids: Sequence[int]
    expected_ticks: Sequence[int]
    revisions: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    reasons: Sequence[str]
    first_ticks: Sequence[int]
    last_ticks: Sequence[int]
    tick_counts: Sequence[int]
    missed: Sequence[int]
    controller_id: str
    further_job_ids: Sequence[int]
    further_reasons: Sequence[str]
    further_first_ticks: Sequence[int]
    further_last_ticks: Sequence[int]
    further_tick_counts: Sequence[int]


class StageKept(Statement):
    boundary: int
    runs: int


class StartActivations(Statement):
    activation_ids: Sequence[int]
    expected_ticks: Sequence[int]
    runner_ids: Sequence[str]
    deployments: Sequence[str]
    next_ticks: Sequence[int | None]
    places: Sequence[str | None]
    controller_id: str
    placed: bool
    hard_grace_ms: int


class StartCronJobs(Statement):
    placed: bool
    job_ids: Sequence[int]
    expected_ticks: Sequence[int]
    ticks: Sequence[int]
    run_ats: Sequence[int]
    runner_ids: Sequence[str]
    deployments: Sequence[str]
    triggers: Sequence[str]
    missed: Sequence[int]
    next_ticks: Sequence[int | None]
    next_run_ats: Sequence[int | None]
    revisions: Sequence[int]
    places: Sequence[str | None]
    controller_id: str
    hard_grace_ms: int


class SuggestKeys(Statement):
    begun: str
    namespaces: Sequence[str] | None
    limit: int


class SuggestOfDeployments(Statement):
    kind: str
    namespaces: Sequence[str] | None
    begun: str
    limit: int


class SuggestOfJobs(Statement):
    namespaces: Sequence[str] | None
    looked: int
    kind: str
    begun: str
    limit: int


class SumClosings(Statement):
    late_after_us: int
    boundary: int


class SwapStaged(Statement):
    boundary: int
    recent_id: int
    recent: int
    unfinished: int


class TakeAuditChain(Statement): ...


class TakeBackSkips(Statement):
    job_ids: Sequence[int]
    from_ticks: Sequence[int]
    now: int
    reasons: Sequence[str]


class TakeFolding(Statement):
    limit: int


class TakeJoin(Statement):
    secret_hash: bytes


class TakeMessages(Statement):
    queue: str
    consumer: str
    hold_ms: int
    most: int
    namespace: str


class TakeNotifier(Statement):
    controller_id: str


class TakeOrphanings(Statement): ...


class TakePauses(Statement): ...


class TakePlaces(Statement):
    limit_ids: Sequence[int]
    places: Sequence[int]


class TakeSet(Statement):
    namespace: str
    name: str
    revision: int
    actor: str
    note: str


class TryLockMaintenance(Statement): ...


class UnlockMigrations(Statement):
    schema: str


class UpdateTemplate(Statement):
    description: str
    schedule: str
    anchor: int | None
    policy: str
    payload: str
    labels: str
    timeout_ms: int
    on_disconnect: str
    actor: str
    template_id: int
    revision: int


class UseSession(Statement):
    idle_ms: int
    secret_hash: bytes


class UseToken(Statement):
    secret_hash: bytes

"""Two tasks beside the driver: one reads the books when it is this controller's turn, one delivers what waits.

Neither delays other work: each has few statements at a time, and a slow or dead receiver occupies only its own few
tries.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from cronring.controller.core.notify.delivering import Answer, Next, headers, judged
from cronring.controller.core.notify.endpoint import Endpoint
from cronring.controller.errors import KeysAway, SecretLocked, StoreError, StoreUnavailable
from cronring.controller.ports.webhooks import BooksReading, DeliveryBatch, Outbox, Sent, Tried, Waiting
from cronring.controller.runtime.log import Log
from cronring.controller.services.vault import Vault, open_endpoint
from cronring.schema.duration import measured

READ_S: Final = 0.5
IDLE_S: Final = 1.0  # how often a controller asks whether it is its turn
# docs/decisions/0010: an idle cluster must not ask each second
UNWANTED_S: Final = 15.0  # while there is no webhook: how often it asks, unless a NOTIFY tells of one
CLAIM_S: Final = 0.5
FAILED_S: Final = 2.0
FORGET_S: Final = 3_600.0
COUNT_S: Final = 15.0
TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 5.0
AT_ONCE: Final = 64
EACH_AT_ONCE: Final = 4
# A controller that can't open a webhook's secret leaves it to others for so long; then its key may be back.
LOCKED_S: Final = 10.0
LOCKED_WAIT_MS: Final = 1_000
# All that callers learn of a try without an answer. With more, a user who may add webhooks could scan internal hosts.
# So a closed port, a port without HTTP and an unknown name have the same text.
NO_ANSWER: Final = "no answer: no connection, or nothing that speaks HTTP; the controller's log says more"
TIMED_OUT: Final = (
    f"time-out: no connection within {measured(CONNECT_TIMEOUT_S * 1_000)}, "
    f"or no answer within {measured(TIMEOUT_S * 1_000)}"
)
UNTRUSTED: Final = "tls: its certificate is not trusted; the controller's log says more"
REASON_LENGTH_MAX: Final = 300
USER_AGENT: Final = "cronring"
LOCKED: Final = "locked"  # in counts, a try whose secret did not open


class HttpPosting:
    """controller.ports.webhooks.Posting: no redirect is followed, no cookie kept, no proxy guessed, and no body is
    read.

    The words of an error go to `log` only, for those who run controllers.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Sent:
        """Within TIMEOUT_S."""
        began_s = time.monotonic()
        sent = {**headers, "content-type": "application/json", "user-agent": USER_AGENT}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async with self._opened().post(url, data=body, headers=sent, allow_redirects=False) as response:
                    error_text = _error(response.status)
                    answer = Answer(response.status, error_text, response.headers.get("retry-after"))
        except (aiohttp.ClientError, OSError, ValueError) as error:  # a TimeoutError is an OSError
            answer = Answer(None, _class(error))
            self._log.warning("webhook_not_answered", host=urlsplit(url).netloc, reason=_reason(error))
        return Sent(answer, int((time.monotonic() - began_s) * 1_000))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=2 * AT_ONCE, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _class(error: Exception) -> str:
    match error:
        case TimeoutError():
            return TIMED_OUT
        case aiohttp.ClientConnectorCertificateError():
            return UNTRUSTED
        case _:
            return NO_ANSWER


def _reason(error: Exception) -> str:
    """For the log: without the other end's words, and without the URL, which may be a secret."""
    words = str(error) if isinstance(error, OSError) else ""
    return (f"{type(error).__name__}: {words}" if words else type(error).__name__)[:REASON_LENGTH_MAX]


def _error(status: int) -> str:
    """An error by the status alone. The body is not told: the receiver may be an internal service."""
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return f"HTTP {status}: redirects are not followed; give the webhook the URL that it leads to"
    return f"HTTP {status}"


class WebhookFigures:
    """For metrics: what waits in the cluster, as last counted; what this controller has read and tried."""

    def __init__(self) -> None:
        self.waiting = Waiting(0, 0)
        self.tries: Counter[str] = Counter()
        self.notices = 0

    def gauges(self) -> dict[str, float]:
        return {
            "webhook_deliveries_waiting": float(self.waiting.waiting),
            "webhook_deliveries_retrying": float(self.waiting.retrying),
        }

    def counters(self) -> dict[str, float]:
        return {"webhook_notices": float(self.notices)} | {
            f"webhook_tries_{kind}": float(self.tries[kind]) for kind in (*(each.value for each in Next), LOCKED)
        }


class Interest:
    """Whether there is a webhook to tell. While there is none, PostgreSQL is hardly asked. At first it is assumed."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.wanted.set()
        self._heard = asyncio.Event()

    def hear(self) -> None:
        """A NOTIFY says that there is a webhook."""
        self._heard.set()

    def ask(self) -> None:
        """PostgreSQL is about to be asked: a NOTIFY from now on may be newer than its answer."""
        self._heard.clear()

    def learn(self, *, wanted: bool) -> None:
        if wanted:
            self.wanted.set()
        else:
            self.wanted.clear()

    async def pause(self, pause_s: float) -> None:
        """Wait `pause_s` seconds; or, while there is no webhook, until there may be one."""
        if self.wanted.is_set():
            await asyncio.sleep(pause_s)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNWANTED_S):
                await self._heard.wait()


async def read_books(
    read: Callable[[], Awaitable[BooksReading]],
    interest: Interest,
    wake: asyncio.Event,
    figures: WebhookFigures,
    log: Log,
) -> None:
    """For ever. `wake` is set when there is something to deliver."""
    while True:
        pause_s = IDLE_S
        interest.ask()
        try:
            done = await read()
        except (StoreError, StoreUnavailable) as error:
            log.warning("books_not_read", reason=str(error))
            pause_s = FAILED_S
        else:
            interest.learn(wanted=done.wanted)
            if done.ours:
                pause_s = 0.0 if done.more else READ_S
            if done.added:
                figures.notices += done.added
                wake.set()
        await interest.pause(pause_s)


class Deliverer:
    """Tries deliveries that wait: AT_ONCE at a time, EACH_AT_ONCE of them for one webhook. Idle without webhooks."""

    def __init__(
        self,
        outbox: Outbox,
        vault: Vault,
        posting: HttpPosting,
        interest: Interest,
        wake: asyncio.Event,
        figures: WebhookFigures,
        log: Log,
    ) -> None:
        self._outbox = outbox
        self._vault = vault
        self._posting = posting
        self._interest = interest
        self._wake = wake
        self._figures = figures
        self._log = log
        self._busy: Counter[int] = Counter()
        self._troubled: set[int] = set()
        self._locked: dict[int, float] = {}  # webhooks that are left to others, and until when, by the loop's clock
        self._tries: set[asyncio.Task[None]] = set()
        self._chance = random.Random()  # noqa: S311 - spreads retries # nosec B311

    async def deliver(self) -> None:
        """For ever. If it is cancelled, its tries end with it, and another controller tries them again."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._count())
                group.create_task(self._forget())
                while True:
                    await self._interest.wanted.wait()
                    claimed = await self._claim()
                    if claimed < AT_ONCE:
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(CLAIM_S if claimed >= 0 else FAILED_S):
                                await self._wake.wait()
                    self._wake.clear()
        finally:
            for task in self._tries:
                task.cancel()
            await asyncio.gather(*self._tries, return_exceptions=True)

    async def _claim(self) -> int:
        """How many were claimed; -1: the database is away."""
        free = AT_ONCE - len(self._tries)
        if free <= 0:
            return 0
        now_s = asyncio.get_running_loop().time()
        self._locked = {webhook_id: until_s for webhook_id, until_s in self._locked.items() if until_s > now_s}
        limited = sorted({*self._busy, *self._troubled, *self._locked})
        busy = {webhook_id: self._free(webhook_id) for webhook_id in limited}
        try:
            batches = await self._outbox.claim(busy, EACH_AT_ONCE, free)
        except (StoreError, StoreUnavailable) as error:
            self._log.warning("deliveries_not_claimed", reason=str(error))
            return -1
        for batch in batches:
            self._busy[batch.webhook_id] += 1
            task = asyncio.get_running_loop().create_task(self._try(batch), name=f"delivery {batch.delivery_id}")
            self._tries.add(task)
            task.add_done_callback(self._tries.discard)
        return len(batches)

    def _free(self, webhook_id: int) -> int:
        """How many more tries a webhook may have. A receiver that fails gets one at a time: others need the room."""
        if webhook_id in self._locked:
            return 0
        limit = 1 if webhook_id in self._troubled else EACH_AT_ONCE
        return max(0, limit - self._busy[webhook_id]) if webhook_id in self._busy else limit

    async def _try(self, batch: DeliveryBatch) -> None:
        try:
            to = await self._open(batch)
            if to is not None:
                body = batch.body.encode()
                signed = headers(to.secret, batch.event_id, batch.now_ms // 1_000, body)
                await self._finish(batch, await self._posting.post(to.url, body, signed))
        except (StoreError, StoreUnavailable) as error:  # it is tried again when its hold ends: at least once
            self._log.warning("delivery_not_recorded", webhook=batch.name, reason=str(error))
        finally:
            self._busy[batch.webhook_id] -= 1
            if not self._busy[batch.webhook_id]:
                del self._busy[batch.webhook_id]
            self._wake.set()

    async def _open(self, batch: DeliveryBatch) -> Endpoint | None:
        """Where the delivery goes; None: the secret doesn't open here. That is not the receiver's fault: others try."""
        try:
            return await open_endpoint(self._vault, batch.name, batch.encrypted)
        except (SecretLocked, KeysAway) as error:
            reason = str(error)
        self._locked[batch.webhook_id] = asyncio.get_running_loop().time() + LOCKED_S
        self._figures.tries[LOCKED] += 1
        self._log.warning("delivery_locked", webhook=batch.name, reason=reason)
        await self._outbox.finish([Tried(batch.delivery_id, batch.attempt, "waiting", LOCKED_WAIT_MS, None, reason)])
        return None

    async def _finish(self, batch: DeliveryBatch, sent: Sent) -> None:
        answer = sent.answer
        age_ms, now_ms = batch.age_ms + sent.took_ms, batch.now_ms + sent.took_ms
        verdict = judged(answer, batch.attempt, age_ms, now_ms, self._chance.random())
        self._figures.tries[verdict.next.value] += 1
        if verdict.next is Next.DELIVERED:
            self._troubled.discard(batch.webhook_id)
        else:
            self._troubled.add(batch.webhook_id)
        match verdict.next:
            case Next.DELIVERED:
                state = "delivered"
            case Next.RETRY:
                state = "waiting"
            case Next.GIVEN_UP | Next.GONE:
                state = "failed"
        tried = Tried(batch.delivery_id, batch.attempt, state, verdict.retry_ms, answer.status, answer.error)
        await self._outbox.finish([tried])
        if verdict.next is Next.GONE:
            await self._outbox.disable(batch.webhook_id, "its receiver answered 410 Gone")
            self._log.warning("webhook_disabled", webhook=batch.name, reason=answer.error)
        elif state == "failed":
            self._log.warning("delivery_given_up", webhook=batch.name, reason=answer.error)

    async def _count(self) -> None:
        while True:
            with contextlib.suppress(StoreError, StoreUnavailable):
                self._figures.waiting = await self._outbox.waiting()
            await asyncio.sleep(COUNT_S)

    async def _forget(self) -> None:
        """Delete old deliveries, an hour after the start and every hour. All controllers may do it at once."""
        pause_s = FORGET_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = FORGET_S
            with contextlib.suppress(StoreError, StoreUnavailable):
                if await self._outbox.forget():
                    pause_s = 1.0

"""gzip, for those who take it: lists of jobs are a tenth of their size."""

from collections.abc import Mapping
from typing import Final

from aiohttp import hdrs, web

from cronring.controller.api.rest.answers import ASIDE

PACKED_FROM: Final = 1_024  # bytes; less is no smaller
_ASIDE_FROM: Final = 16 * 1024
_IDENTITY: Final = {"", "identity"}


def takes_gzip(request: web.Request) -> bool:
    """RFC 9110, 12.5.3: named or meant by `*`, and not with a weight of 0."""
    weights: dict[str, float] = {}
    for part in ",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, [])).split(","):
        coding, _, rest = part.partition(";")
        weights[coding.strip().lower()] = _weight(rest)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def packed(request: web.Request) -> str:
    """What to tell who sends a body that is packed; "": it isn't. Nothing is let in that grows."""
    coding = request.headers.get(hdrs.CONTENT_ENCODING, "")
    if coding.lower() in _IDENTITY:
        return ""
    return f"a body that is packed ({coding!r:.40}) is not taken; send it as it is"


def answered(body: bytes, request: web.Request, *, status: int, kind: str, headers: Mapping[str, str]) -> web.Response:
    """Packed where that pays. What has a secret in it is not to be given here: its length would tell of it."""
    response = web.Response(
        body=body, status=status, content_type=kind, headers={hdrs.VARY: hdrs.ACCEPT_ENCODING, **headers},
        zlib_executor_size=_ASIDE_FROM, zlib_executor=request.config_dict[ASIDE],
    )  # fmt: skip
    if len(body) >= PACKED_FROM and takes_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
    return response


def _weight(parameters: str) -> float:
    """1 where none is said, 0 where it can't be read."""
    name, _, value = parameters.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name.strip().lower() == "q" else 1.0
    except ValueError:
        return 0.0

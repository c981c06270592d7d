"""Addresses of the console's pages, as links name them: paths beneath the URL where browsers find the console."""

from urllib.parse import quote, urlencode

from cronring.schema.instant import format_instant


def job_page(key: str, at: int | None = None) -> str:
    """Of a job; `at`, in microseconds since 1970: with the answer to why a tick ran then, or not."""
    asked = "" if at is None else f"?{urlencode({'why': format_instant(at)})}"
    return f"/jobs/{quote(key, safe='')}{asked}"


def execution_page(execution_id: int) -> str:
    return f"/executions/{execution_id}"

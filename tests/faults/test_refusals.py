"""A model that refuses: the turn ends with the reason, or goes on where asking again helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.steps import drops, fails, overflows
from hermes.testing.wires.table import WireName
from tests.faults.conftest import Share
from tests.faults.ground import WIRES, Bend, live

REASONS = {
    400: "format_error",
    401: "auth",
    402: "billing",
    403: "auth",
    404: "model_not_found",
    408: "timeout",
    409: "server_error",
    413: "payload_too_large",
    422: "server_error",
    429: "rate_limit",
    500: "server_error",
    502: "server_error",
    503: "overloaded",
    504: "timeout",
    524: "timeout",
    529: "overloaded",
}
FINAL = (400, 401, 402, 403, 404, 413)
BODIES = {
    "a page": "<html><body>Bad</body></html>",
    "nothing": "",
    "a list": "[]",
    "a string": '"no"',
    "null": "null",
    "an error that is a string": '{"error": "no"}',
    "an error that is a list": '{"error": [1]}',
    "no UTF-8": "\udcff\udcfe",
    "half of it": '{"error": {"message": "br',
}


def refusing(status: int, body: str | None = None) -> Bend:
    return lambda _step: fails(status, body=body)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_has_its_reason_and_passes_if_it_can(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    reasons = share(REASONS, wire)
    lived = await live(tmp_path, {status: refusing(status) for status in reasons}, wire)
    failed = {status: f"failed: {reason}" for status, reason in reasons.items()}
    assert {status: life.ends for status, life in lived.items()} == {
        status: (words, words if status in FINAL else "done") for status, words in failed.items()
    }
    assert {status for status, life in lived.items() if not life.run} == reasons.keys() & set(FINAL)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_in_any_words_is_understood_as_one(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    bends = {name: refusing(500, body) for name, body in share(BODIES, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert {life.ends for life in lived.values()} == {("failed: server_error", "done")}


@pytest.mark.parametrize("wire", WIRES)
async def test_other_refusals(tmp_path: Path, wire: WireName) -> None:
    bends: dict[str, Bend] = {
        "dropped": lambda _step: drops(),
        "come back tomorrow": lambda _step: fails(429, retry_after=86_400),
        "come back soon": lambda _step: fails(529, headers={"retry-after": "soon"}),
        "too long": lambda _step: overflows(8192),
    }
    lived = await live(tmp_path, bends, wire)
    assert {name: life.ends for name, life in lived.items()} == {
        "dropped": ("failed: cut", "done"),
        "come back tomorrow": ("failed: rate_limit", "done"),
        "come back soon": ("failed: overloaded", "done"),
        "too long": ("failed: context_overflow", "failed: context_overflow"),
    }

"""A model that refuses: the turn ends with the reason, or goes on where asking again helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.steps import Step, drops, fails, overflows
from hermes.testing.wires.table import WireName
from tests.faults.ground import WIRES, live

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


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", REASONS)
async def test_a_refusal_has_its_reason_and_passes_if_it_can(
    tmp_path: Path, wire: WireName, status: int
) -> None:
    lived = await live(tmp_path, lambda _step: fails(status), wire)
    failed = f"failed: {REASONS[status]}"
    assert (lived.first, lived.second) == (failed, failed if status in FINAL else "done")
    assert len(lived.run) == (0 if status in FINAL else 1)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("body", BODIES)
async def test_a_refusal_in_any_words_is_understood_as_one(
    tmp_path: Path, wire: WireName, body: str
) -> None:
    lived = await live(tmp_path, lambda _step: fails(500, body=BODIES[body]), wire)
    assert (lived.first, lived.second) == ("failed: server_error", "done")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("step", "first", "second"),
    [
        (drops(), "failed: cut", "done"),
        (fails(429, retry_after=86_400), "failed: rate_limit", "done"),
        (fails(529, headers={"retry-after": "soon"}), "failed: overloaded", "done"),
        (overflows(8192), "failed: context_overflow", "failed: context_overflow"),
    ],
)
async def test_other_refusals(
    tmp_path: Path, wire: WireName, step: Step, first: str, second: str
) -> None:
    lived = await live(tmp_path, lambda _step: step, wire)
    assert (lived.first, lived.second) == (first, second)

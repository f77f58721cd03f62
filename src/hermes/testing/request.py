"""A request to the scripted server."""

from __future__ import annotations

from functools import cached_property

from hermes.codec.values import JsonObject, Value
from hermes.testing.conversation import RequestMessage, parse_messages
from hermes.testing.wires.table import WireName


class Request(Value, dict=True):
    """`n` counts from 1. `raw` is the exact body; `body` is {} if it is not a JSON object. Header
    names are in lower case. `at` is the time of the server's clock."""

    n: int
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    wire: WireName | None = None
    body: JsonObject = {}

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    # Cached: scripts and tests read it often, and long conversations are slow to parse.
    @cached_property
    def messages(self) -> tuple[RequestMessage, ...]:
        """The conversation in one form for every wire format, system text first."""
        return tuple(parse_messages(self.wire, self.body)) if self.wire else ()

    @property
    def last_text(self) -> str:
        """The newest user text or tool result."""
        return next((said.text for said in reversed(self.messages) if said.text), "")

    @property
    def results(self) -> tuple[RequestMessage, ...]:
        """The tool results since the last reply of the model, in order."""
        newest: list[RequestMessage] = []
        for said in reversed(self.messages):
            if said.role == "assistant":
                break
            if said.role == "tool":
                newest.append(said)
        return tuple(reversed(newest))

    @property
    def tools(self) -> tuple[str, ...]:
        offered = self.body.get("tools") or []
        return tuple(tool.get("function", tool).get("name", "") for tool in offered)


class Violation(Value):
    """A request that its wire format forbids or that has no step. `n` is the number of the
    request."""

    n: int
    wire: WireName
    reason: str

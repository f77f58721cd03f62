"""Steps: what a scripted model does with one request, and scripts of steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Generic, Literal, TypeVar

from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.core.messages import StopReason, Usage

Flaw = Literal[
    "crlf",
    "keep_alive",
    "no_end",
    "no_finish",
    "no_usage",
    "missing_ids",
    "same_index",
    "resent_name",
    "resent_arguments",
    "object_arguments",
]
"""Ways in which real servers deviate from their format:

crlf              lines end with CR LF
keep_alive        a comment (and, in the messages wire, a ping) before every event
no_end            chat without [DONE], messages without message_stop
no_finish         the stream ends in order, but no finish reason was given
no_usage          no token counts anywhere
missing_ids       tool calls come without their id
same_index        all tool calls of a chat stream have index 0
resent_name       every piece of a chat tool call repeats its id and name
resent_arguments  the last piece of a chat tool call holds all arguments once more
object_arguments  arguments are a JSON object, not a string that holds one
"""

ReasoningForm = Literal["reasoning_content", "reasoning", "inline"]


class ScriptedCall(Value, forbid_unknown_fields=True):
    """A tool call. With `id` None the server chooses one; "" is sent as it is. `raw` replaces the
    encoded arguments, valid or not."""

    name: str
    arguments: JsonObject = {}
    id: str | None = None
    raw: str | None = None


class Failure(Value, forbid_unknown_fields=True):
    """An error response. Empty fields get what the vendors send for `status`. Status 0 closes the
    connection without a byte. `limit` makes it a context overflow."""

    status: int
    message: str = ""
    kind: str = ""
    code: str = ""
    headers: dict[str, str] = {}
    retry_after: float | None = None
    body: str | None = None
    limit: int | None = None


class Pace(Value, forbid_unknown_fields=True):
    """The timing of the bytes of a response."""

    # Characters per piece; 0 for one piece.
    chunk: int = 24
    first_seconds: float = 0.0
    between_seconds: float = 0.0
    # Bytes per write; 0 for no limit. A pause of `drip_seconds` follows each write.
    drip: int = 0
    drip_seconds: float = 0.0


class Break(Value, forbid_unknown_fields=True):
    """Where and how a response breaks. Exactly one of the three positions is set."""

    # `cut` closes the connection, `reset` sends a TCP reset, `hold` keeps it open silently (or with
    # comments), `error` sends an error event, `garbage` sends half of the next event and continues.
    how: Literal["cut", "reset", "hold", "error", "garbage"]
    # Positions: after this many events, after this many bytes of the body, or before the head.
    after_chunks: int | None = None
    after_bytes: int | None = None
    before_head: bool = False
    comment_seconds: float = 0.0
    failure: Failure | None = None


class Step(Value, forbid_unknown_fields=True):
    """One reply of the model. The order on the wire is reasoning, text, calls."""

    text: str = ""
    reasoning: str = ""
    sealed: str | None = None
    reasoning_form: ReasoningForm = "reasoning_content"
    calls: tuple[ScriptedCall, ...] = ()
    # None follows from the content.
    stop: StopReason | None = None
    # Replaces the finish reason of the wire format.
    finish: str = ""
    # None is estimated.
    usage: Usage | None = None
    model: str = ""
    headers: dict[str, str] = {}
    failure: Failure | None = None
    pace: Pace = Pace()
    breaks: Break | None = None
    flaws: tuple[Flaw, ...] = ()
    # What the request body must contain.
    expect: JsonObject = {}

    @property
    def stops(self) -> StopReason:
        return self.stop or ("calls" if self.calls else "done")


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in parts of `size` characters, or whole for 0; nothing for no text."""
    step = size or len(text) or 1
    return (text[at : at + step] for at in range(0, len(text), step))


def says(text: str, *, usage: Usage | None = None, stop: StopReason | None = None) -> Step:
    return Step(text=text, usage=usage, stop=stop)


def says_nothing() -> Step:
    """A complete reply without text, reasoning or calls."""
    return Step()


def calls(tool: str, /, **arguments: object) -> Step:
    """One tool call. For an argument that is not a Python name, or for an id, use `call`."""
    return Step(calls=(ScriptedCall(name=tool, arguments=arguments),))


def calls_many(*wanted: tuple[str, JsonObject] | ScriptedCall, text: str = "") -> Step:
    """Several tool calls in one reply, optionally after text."""
    made = tuple(
        c if isinstance(c, ScriptedCall) else ScriptedCall(name=c[0], arguments=c[1])
        for c in wanted
    )
    return Step(text=text, calls=made)


def call(name: str, arguments: JsonObject | None = None, *, id: str | None = None) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments or {}, id=id)


def calls_raw(name: str, raw: str, *, id: str | None = None) -> Step:
    """A tool call whose arguments are exactly these characters."""
    return Step(calls=(ScriptedCall(name=name, raw=raw, id=id),))


def calls_cut_short(name: str, raw: str) -> Step:
    """A tool call that hit the output limit after these characters of its arguments."""
    return Step(calls=(ScriptedCall(name=name, raw=raw),), stop="length")


def thinks(
    reasoning: str,
    *,
    then: Step | None = None,
    sealed: str | None = None,
    form: ReasoningForm = "reasoning_content",
) -> Step:
    """Reasoning before `then`, or reasoning only. `sealed` is the signature or encrypted content;
    None chooses one, "" sends none. `form` is how the chat wire shows it."""
    return replace(then or Step(), reasoning=reasoning, sealed=sealed, reasoning_form=form)


def costs(step: Step, usage: Usage) -> Step:
    """Return the same step with these token counts."""
    return replace(step, usage=usage)


def fails(
    status: int,
    message: str = "",
    *,
    kind: str = "",
    code: str = "",
    headers: dict[str, str] | None = None,
    retry_after: float | None = None,
    body: str | None = None,
) -> Step:
    """An error status with the body and headers that vendors send with it."""
    failure = Failure(
        status=status,
        message=message,
        kind=kind,
        code=code,
        headers=headers or {},
        retry_after=retry_after,
        body=body,
    )
    return Step(failure=failure)


def overflows(limit: int) -> Step:
    """The error of a model whose context window of `limit` tokens is too small."""
    return Step(failure=Failure(status=400, limit=limit))


def drops() -> Step:
    """The connection is closed before the first byte."""
    return Step(failure=Failure(status=0))


Asked = TypeVar("Asked")
Rule = Callable[[Asked], Step | Awaitable[Step]]


class ScriptExhausted(Exception):
    """The script has no more steps."""


class StepScript(Generic[Asked]):
    """Steps in order. With `loop`, the last one repeats. A rule never ends."""

    def __init__(self, steps: Iterable[Step] | Rule[Asked], *, loop: bool = False) -> None:
        self._rule: Rule[Asked] | None = None
        self._steps: list[Step] = []
        if callable(steps):
            self._rule = steps
        else:
            self._steps = list(steps)
        self._loop = loop
        self._used = 0

    @property
    def left(self) -> int:
        """Unused steps."""
        return len(self._steps) - self._used

    def add(self, *steps: Step) -> None:
        self._steps.extend(steps)

    def next(self, asked: Asked) -> Step | Awaitable[Step]:
        if self._rule is not None:
            return self._rule(asked)
        if self._used < len(self._steps):
            self._used += 1
            return self._steps[self._used - 1]
        if self._loop and self._steps:
            return self._steps[-1]
        raise ScriptExhausted(f"the script has only {len(self._steps)} steps")


def mismatch(expected: JsonValue, found: JsonValue, where: str = "body") -> str | None:
    """Where `found` differs from `expected`. Objects may have more keys."""
    if not isinstance(expected, dict):
        return None if expected == found else f"{where} is {found!r}, not {expected!r}"
    if not isinstance(found, dict):
        return f"{where} is {found!r}, not an object"
    for key, part in expected.items():
        if key not in found:
            return f"{where}.{key} is missing"
        if reason := mismatch(part, found[key], f"{where}.{key}"):
            return reason
    return None

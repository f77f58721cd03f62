"""Chooses the response to a request and counts its cost."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Iterable
from decimal import Decimal

from hermes.codec.json import DecodeError, decode
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.messages import Usage
from hermes.testing.http_response import WireResponse, break_response, refusal, reply
from hermes.testing.request import Request, Violation
from hermes.testing.steps import Failure, Rule, ScriptExhausted, Step, StepScript, mismatch
from hermes.testing.wires.draft import DraftCall, ReplyDraft, draft_call, sealer
from hermes.testing.wires.table import WIRES, WireName


class Prices(Value, forbid_unknown_fields=True):
    """Prices in US dollars per million tokens, which equals millionths per token."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    # Replies state their cost, as some vendors do.
    told: bool = True

    def micros(self, usage: Usage) -> Decimal:
        """Millionths of a dollar, exactly."""
        kinds = ("input", "output", "cache_read", "cache_write")
        # Via the shortest decimal form: 0.1 means a tenth, not the nearest binary fraction.
        exact = (Decimal(str(getattr(self, kind))) * getattr(usage, kind) for kind in kinds)
        return sum(exact, Decimal(0))


class Charge(Value):
    """One line of the bill; `n` is the number of the request."""

    n: int
    model: str
    usage: Usage
    micros: Decimal


class Bill:
    """The bill of a server. A reply is charged in full when it begins, even if the client
    disconnects. Error responses are free."""

    def __init__(self, prices: Prices | None) -> None:
        self.prices = prices
        self.charges: list[Charge] = []

    @property
    def micros(self) -> Decimal:
        return sum((charge.micros for charge in self.charges), Decimal(0))

    @property
    def dollars(self) -> float:
        return float(self.micros / 1_000_000)

    def charge(self, n: int, model: str, usage: Usage) -> float | None:
        """The price in dollars; None if the reply does not state it."""
        if self.prices is None:
            return None
        micros = self.prices.micros(usage)
        self.charges.append(Charge(n=n, model=model, usage=usage, micros=micros))
        return float(micros / 1_000_000) if self.prices.told else None


def estimated_usage(input_tokens: int, step: Step) -> Usage:
    """The usage of a step that does not state it; at least one output token."""
    reasoning = tokens_of_size(len(step.reasoning))
    arguments = sum(tokens_of_size(len(call.raw or str(call.arguments))) for call in step.calls)
    output = max(1, tokens_of_size(len(step.text)) + reasoning + arguments)
    return Usage(input=input_tokens, output=output, reasoning=reasoning, requests=1)


CHOSEN_ID = re.compile(rb'"(?:call|toolu)_(\d+)"')


class ScriptedResponder:
    """Answers requests from a script. `strict` rejects what the wire format forbids. `window` is
    the context window in estimated tokens; None for no limit."""

    def __init__(
        self,
        steps: Iterable[Step] | Rule[Request],
        *,
        loop: bool = False,
        strict: bool = True,
        window: int | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.script: StepScript[Request] = StepScript(steps, loop=loop)
        self.strict = strict
        self.window = window
        self.bill = Bill(prices)
        self.violations: list[Violation] = []
        self._last_call = 0

    def answer(self, request: Request, wire: WireName) -> WireResponse | Awaitable[WireResponse]:
        """The response, at once unless a rule has to be awaited. A rejected request and a rule that
        raises an exception are listed in the violations."""
        chosen = self._choose(request, wire)
        if isinstance(chosen, Step):
            return self._write(request, wire, chosen)

        async def write_later() -> WireResponse:
            try:
                step = await chosen
            except Exception as error:
                step = self._reject(request, wire, f"the rule raised {error!r}")
            return self._write(request, wire, step)

        return write_later()

    def _choose(self, request: Request, wire: WireName) -> Step | Awaitable[Step]:
        if not request.body:
            return self._reject(request, wire, not_json(request.raw))
        problems = WIRES[wire].find_problems(request.body, request.headers)
        if self.strict and (reasons := list(problems)):
            return self._reject(request, wire, *reasons)
        if self.window is not None and tokens_of_size(len(request.raw)) > self.window:
            return Step(failure=Failure(status=400, limit=self.window))
        try:
            return self.script.next(request)
        except ScriptExhausted as over:
            return self._reject(request, wire, str(over))
        except Exception as error:
            return self._reject(request, wire, f"the rule raised {error!r}")

    def _write(self, request: Request, wire: WireName, step: Step) -> WireResponse:
        if reason := mismatch(step.expect, request.body):
            step = self._reject(request, wire, reason)
        if step.failure is not None:
            return refusal(step.failure, wire, now=request.at, pace=step.pace)
        usage = step.usage or estimated_usage(tokens_of_size(len(request.raw)), step)
        model = step.model or request.model
        options = request.body.get("stream_options")
        draft = ReplyDraft(
            step=step,
            n=request.n,
            model=model,
            created=int(request.at),
            calls=self._calls(request, wire, step),
            usage=usage,
            wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
            cost=self.bill.charge(request.n, model, usage),
            sealer=sealer(wire, request.model),
        )
        whole = reply(draft, wire, stream=request.stream)
        return break_response(whole, step.breaks, draft, wire) if step.breaks else whole

    def _reject(self, request: Request, wire: WireName, *reasons: str) -> Step:
        self.violations.extend(Violation(n=request.n, wire=wire, reason=r) for r in reasons)
        return Step(failure=Failure(status=400, message="; ".join(reasons)))

    def _calls(self, request: Request, wire: WireName, step: Step) -> tuple[DraftCall, ...]:
        if not step.calls:
            return ()
        # Ids continue from the highest in the conversation, so that they stay unique even when a
        # new server continues the conversation of another.
        seen = (int(number) for number in CHOSEN_ID.findall(request.raw))
        first = max((self._last_call, *seen)) + 1
        self._last_call = first + len(step.calls) - 1
        prefix, without = WIRES[wire].CALL_PREFIX, "missing_ids" in step.flaws
        return tuple(
            draft_call(call, f"{prefix}{first + at}", without_id=without)
            for at, call in enumerate(step.calls)
        )


def body_of(raw: bytes) -> JsonObject:
    """The JSON object in a request; {} if there is none."""
    try:
        return decode(dict[str, JsonValue], raw)
    except DecodeError:
        return {}


def not_json(raw: bytes) -> str:
    """Why a body is rejected; lone surrogates, a common mistake, have their own message."""
    try:
        json.loads(raw)
    except ValueError as error:
        return f"the body is not JSON: {error}"
    try:
        decode(dict[str, JsonValue], raw)
    except DecodeError:
        return "the body is not a JSON object of valid Unicode (a lone surrogate?)"
    return "the body is an empty object"

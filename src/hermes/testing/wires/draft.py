"""A step with ids, token counts and model name filled in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.messages import Usage
from hermes.testing.steps import ScriptedCall, Step, pieces

Frame = tuple[str, JsonObject | str]
"""A stream event: its name ("" if the wire format has none) and its data."""


class DraftCall(Value):
    """`text` is the encoded arguments; with `id` None the field is left out."""

    id: str | None
    name: str
    text: str

    @property
    def value(self) -> JsonValue:
        """The arguments as an object, or the invalid text."""
        try:
            return decode(dict[str, JsonValue], self.text) if self.text else {}
        except DecodeError:
            return self.text


class ReplyDraft(Value):
    """`sealer` signs the reasoning."""

    step: Step
    n: int
    model: str
    created: int
    calls: tuple[DraftCall, ...]
    usage: Usage
    wants_usage: bool = False
    cost: float | None = None
    sealer: str = ""

    @property
    def sealed(self) -> str | None:
        """The signature of the reasoning; None without reasoning or if none is wanted."""
        if self.step.sealed is None:
            return seal(self.step.reasoning, self.sealer) if self.step.reasoning else None
        return self.step.sealed or None

    @property
    def counts(self) -> bool:
        return "no_usage" not in self.step.flaws

    def pieces(self, text: str) -> Iterator[str]:
        return pieces(text, self.step.pace.chunk)


def wire_json(value: JsonValue) -> bytes:
    """JSON as a server may send it: lone surrogates are escaped."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def draft_call(call: ScriptedCall, chosen_id: str, *, without_id: bool) -> DraftCall:
    text = call.raw if call.raw is not None else wire_json(call.arguments).decode()
    given = chosen_id if call.id is None else call.id
    return DraftCall(id=None if without_id else given, name=call.name, text=text)


SEAL = "seal_"


def sealer(wire: str, model: str) -> str:
    """The signer of reasoning, which is valid only for one model and wire format."""
    return f"{wire}:{model}"


def seal(text: str, by: str = "") -> str:
    """A signature that proves its signer and that the text is unchanged."""
    signed = f"{by}\n{text}".encode("utf-8", "surrogatepass")
    return SEAL + hashlib.blake2b(signed, digest_size=16).hexdigest()

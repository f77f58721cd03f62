"""Calls found in text, checked against the offered tools."""

from __future__ import annotations

from typing import NamedTuple

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.attempt import CallPosition
from hermes.providers.textcalls.offer import OfferedTools
from hermes.providers.textcalls.schema import SchemaMismatch
from hermes.providers.textcalls.style import CallStyle
from hermes.providers.textcalls.tape import RawCall

# A character that shows that a sentence continues.
_CONTINUATIONS = ",.;:)]}`'\"”’»"


class TextCall(NamedTuple):
    """A call of an offered tool. `broken` tells why it cannot run."""

    name: str
    arguments: JsonObject
    broken: str = ""


class CallBlock(NamedTuple):
    """Calls that were written together; `text` is their markup. `named`: the first one was already
    announced."""

    style: CallStyle
    text: str
    calls: tuple[TextCall, ...]
    place: CallPosition
    named: bool

    def is_meant(self, gap: str, ahead: str) -> bool:
        """True if marked calls are meant, judging by the white space after them and by what
        follows; "" is the end of the reply."""
        if not self.place.boundary:
            return not ahead and self.place.announced
        return not ahead or "\n" in gap or not (ahead[0].islower() or ahead[0] in _CONTINUATIONS)


def check_calls(raws: tuple[RawCall, ...], offer: OfferedTools) -> tuple[TextCall, ...]:
    """All of them, or none if one is not a valid call of an offered tool."""
    calls: list[TextCall] = []
    for raw in raws:
        name = offer.strip_namespace(raw.name)
        try:
            calls.append(TextCall(name, offer.arguments(name, raw.arguments, typed=raw.typed)))
        except SchemaMismatch:
            return ()
    return tuple(calls)

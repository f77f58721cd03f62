"""Calls found in text, checked against the offered tools."""

from __future__ import annotations

from typing import NamedTuple

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.attempt import Place
from hermes.providers.textcalls.offer import Offer
from hermes.providers.textcalls.schema import Misfit
from hermes.providers.textcalls.style import Style
from hermes.providers.textcalls.tape import Raw

# A character that shows that a sentence continues.
_CONTINUATIONS = ",.;:)]}`'\"”’»"


class Wish(NamedTuple):
    """A call of an offered tool. `broken` tells why it cannot run."""

    name: str
    arguments: JsonObject
    broken: str = ""


class Block(NamedTuple):
    """Calls that were written together; `text` is their markup. `named`: the first one was already
    announced."""

    style: Style
    text: str
    wishes: tuple[Wish, ...]
    place: Place
    named: bool

    def meant_before(self, gap: str, ahead: str) -> bool:
        """True if marked calls are meant, judging by the white space after them and by what
        follows; "" is the end of the reply."""
        if not self.place.boundary:
            return not ahead and self.place.announced
        return not ahead or "\n" in gap or not (ahead[0].islower() or ahead[0] in _CONTINUATIONS)


def wishes_of(raws: tuple[Raw, ...], offer: Offer) -> tuple[Wish, ...]:
    """All of them, or none if one is not a valid call of an offered tool."""
    calls: list[Wish] = []
    for raw in raws:
        name = offer.own(raw.name)
        try:
            calls.append(Wish(name, offer.arguments(name, raw.arguments, typed=raw.typed)))
        except Misfit:
            return ()
    return tuple(calls)

"""Calls that were found in a text and are held against the tools on offer."""

from __future__ import annotations

from typing import NamedTuple

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.attempt import Place
from hermes.providers.textcalls.offer import Offer
from hermes.providers.textcalls.schema import Misfit
from hermes.providers.textcalls.style import Style
from hermes.providers.textcalls.tape import Raw

# A character that shows that a sentence goes on.
_GOES_ON = ",.;:)]}`'\"”’»"


class Wish(NamedTuple):
    """A call of a tool on offer. `broken` says why it cannot be run after all."""

    name: str
    arguments: JsonObject
    broken: str = ""


class Block(NamedTuple):
    """Calls that were written together; `text` is all of their mark-up. `named`: the first of them
    was told of while it was written."""

    style: Style
    text: str
    wishes: tuple[Wish, ...]
    place: Place
    named: bool

    def meant_before(self, gap: str, ahead: str) -> bool:
        """Whether calls with mark-up of their own are meant, by the white space after them and by
        what comes then; "" is the end of the reply."""
        if not self.place.boundary:
            return not ahead and self.place.announced
        return not ahead or "\n" in gap or not (ahead[0].islower() or ahead[0] in _GOES_ON)


def wishes_of(raws: tuple[Raw, ...], offer: Offer) -> tuple[Wish, ...]:
    """All of them, or none if one is no call of a tool on offer."""
    made: list[Wish] = []
    for raw in raws:
        name = offer.own(raw.name)
        try:
            made.append(Wish(name, offer.arguments(name, raw.arguments, typed=raw.typed)))
        except Misfit:
            return ()
    return tuple(made)

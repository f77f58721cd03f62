"""Those who see every request that a scripted server of this process gets, whoever started it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

# A test run has witnesses before anything of it needs a server.
if TYPE_CHECKING:
    from hermes.testing.request import Request

Witness = Callable[["Request"], None]

_present: list[Witness] = []


@contextmanager
def witnessed(by: Witness) -> Iterator[None]:
    """`by` is called in the server's thread before the request is answered, so it should be quick
    and must not raise."""
    _present.append(by)
    try:
        yield
    finally:
        _present.remove(by)


def testify(request: Request) -> None:
    for witness in tuple(_present):
        witness(request)

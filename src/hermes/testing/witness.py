"""Observers of every request to any scripted server of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

# Observers are registered before a test run needs a server, so the server is not imported.
if TYPE_CHECKING:
    from hermes.testing.request import Request

Witness = Callable[["Request"], None]

_present: list[Witness] = []


@contextmanager
def witnessed(by: Witness) -> Iterator[None]:
    """`by` is called in the server's thread before the request is answered. It should be fast and
    must not raise."""
    _present.append(by)
    try:
        yield
    finally:
        _present.remove(by)


def testify(request: Request) -> None:
    for witness in tuple(_present):
        witness(request)

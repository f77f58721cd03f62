"""Hermes: one crash-proof agent core behind many surfaces.

Importing this package loads nothing but the standard library; `AIAgent` is fetched on first use.
"""

from __future__ import annotations

from hermes.version import __version__

# The real one costs a third of the time that `hermes --version` may take.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.surfaces.python.agent import AIAgent

__all__ = ["AIAgent", "__version__"]


def __getattr__(name: str) -> object:
    if name == "AIAgent":
        from hermes.surfaces.python.agent import AIAgent

        return AIAgent
    raise AttributeError(f"module 'hermes' has no attribute {name!r}")

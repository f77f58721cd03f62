"""What delegation needs from the process that runs it; `app` provides it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hermes.codec.values import Value
from hermes.config.run_context import RunContext
from hermes.core.session import Session
from hermes.core.session_request import ChildOptions
from hermes.journal.journal import SqliteJournal


class ChildOpening(Value):
    """A child session to open, or to resume if it exists. Without `options`, everything follows
    from its parent."""

    id: str
    source: str
    attended: bool
    options: ChildOptions
    is_new: bool = True


class ParentFacts(Value):
    """What a child session takes from its parent."""

    tools: tuple[str, ...]
    # The tools that the tool search of the parent finds.
    findable: tuple[str, ...]
    # Whether it also finds tools of MCP servers and plugins.
    finds_added: bool
    # The source of the root of the tree, whose policy rules apply.
    surface: str
    # Whether the parent answers questions with yes when no person can be asked.
    approved: bool
    # In tokens, of the parent's model.
    window: int


class ChildHost(Protocol):
    """Opens and closes child sessions."""

    @property
    def context(self) -> RunContext: ...

    @property
    def journal(self) -> SqliteJournal: ...

    def find_session(self, session_id: str) -> Session | None: ...

    def parent_facts(self, owner: Session) -> ParentFacts: ...

    async def child_model(self, owner: Session) -> tuple[str, str]:
        """Return model and provider of child sessions; raise HermesError if the settings name one
        that cannot be used."""
        ...

    def tool_tokens(self, names: Iterable[str]) -> int: ...

    async def open_child(self, owner: Session, opening: ChildOpening) -> Session:
        """Raises SessionBusy while another process has it open."""
        ...

    async def close_child(self, session: Session, *, suspend: bool = False) -> None: ...

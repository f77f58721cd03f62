"""What a surface says when it wants a session."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.effects import Principal


class SessionRequest(Value):
    """A new session, unless `resume` names one (id, beginning of an id, or title) or `newest` is
    given: "" for the newest of this source, else a title. `attended` means that somebody can
    answer questions. `person` is the name by which the surface knows somebody else than the owner,
    such as "telegram:42": it is what memory tells them apart by. `job` is what the session is a
    part of, for spending caps. A new session has the tools of `toolsets` only, as far as it would
    have them without, gets a git worktree of its own with `worktree`, and knows its id with
    `tell_id`; who `brings_tools` wants to find them. A resumed one goes on in its old folder,
    unless it is to `stay` here. Empty strings leave a choice to the settings."""

    source: str
    attended: bool
    platform: str = "cli"
    resume: str = ""
    newest: str | None = None
    cwd: str = ""
    extra: str = ""
    principal: Principal = "owner"
    person: str = ""
    session_id: str = ""
    parent: str = ""
    job: str = ""
    toolsets: tuple[str, ...] = ()
    rules: bool = True
    worktree: bool = False
    brings_tools: bool = False
    tell_id: bool = False
    stay: bool = False

    def with_extra(self, extra: str) -> SessionRequest:
        """The same wish with these words at the end of the system text."""
        return replace(self, extra=extra)

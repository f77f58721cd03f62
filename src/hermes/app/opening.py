"""What a surface says when it wants a session."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.effects import Principal


class Opening(Value):
    """A new session, unless `resume` names one (id, beginning of an id, or title) or `newest` is
    given: "" for the newest of this source, else a title. `attended` means that somebody can
    answer questions. `job` is what the session is a part of, for spending caps. A new session gets
    a git worktree of its own with `worktree`. Empty strings leave a choice to the settings."""

    source: str
    attended: bool
    platform: str = "cli"
    resume: str = ""
    newest: str | None = None
    cwd: str = ""
    extra: str = ""
    principal: Principal = "owner"
    session_id: str = ""
    parent: str = ""
    job: str = ""
    rules: bool = True
    worktree: bool = False

    def with_extra(self, extra: str) -> Opening:
        """The same wish with these words at the end of the system text."""
        return replace(self, extra=extra)

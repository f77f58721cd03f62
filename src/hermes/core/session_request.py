"""The request of a surface to open a session."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.effects import Principal


class SessionRequest(Value):
    """Opens a new session, unless `resume` names one (id, id prefix or title) or `newest` is given:
    "" for the newest of this source, else a title. `attended`: someone can answer questions.
    `person` identifies a user other than the owner, such as "telegram:42", and selects their
    memory. `job` groups sessions for spending caps. `toolsets` limits the tools of a new session;
    `worktree` gives it its own git worktree; `tell_id` puts its id into the prompt;
    `brings_tools` makes `tool_search` available. A resumed session continues in its old folder
    unless `stay` is set. Empty strings leave a choice to the settings."""

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
        """Returns the request with this text at the end of the system prompt."""
        return replace(self, extra=extra)

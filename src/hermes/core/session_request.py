"""The request of a surface to open a session."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.effects import Principal


class ChildOptions(Value):
    """What a child session has from its parent.

    tools      the tools in every request
    findable   the tools that `tool_search` may find, if it is one of them
    origins    the sources of text in the parent's view
    model      the model, with `provider`
    max_steps  the most model calls of a turn
    surface    the source whose policy rules apply
    approved   questions are answered with yes when no person can be asked
    effort     the reasoning effort; "" for that of the settings
    """

    tools: tuple[str, ...]
    model: str
    provider: str
    surface: str
    findable: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_steps: int = 50
    approved: bool = False
    effort: str = ""


class SessionRequest(Value):
    """Asks for a new session, or for an existing one with `resume` or `newest`. An empty string
    leaves the choice to the settings.

    source        who opens it, such as "cli" or "api:phone"
    attended      a person can answer questions
    platform      the surface whose toolsets and hints apply
    resume        id, id prefix or title of the session to resume
    newest        resume the newest session of this source (""), or the newest with this title
    cwd           the folder of a new session
    extra         text at the end of the system prompt
    principal     on whose behalf the session acts
    person        a user other than the owner, such as "telegram:42"; selects their memory
    session_id    the id of a new session
    parent        the session that this one belongs to
    job           groups sessions for spending caps
    task          the turn of another session whose spending cap this one shares
    toolsets      limits the tools of a new session
    context_files put context files, SOUL.md and memory into the prompt
    only_memory   of these, put only memory into the prompt
    soul          put SOUL.md into the prompt in any case
    worktree      give a new session its own git worktree
    brings_tools  make `tool_search` available
    tell_id       put the id of the session into the prompt
    keep_id       the session is addressed by its id, so a compaction never moves it to a child
    child         set for a child session
    stay          do not change to the folder of a resumed session
    """

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
    task: str = ""
    toolsets: tuple[str, ...] = ()
    context_files: bool = True
    only_memory: bool = False
    soul: bool = False
    worktree: bool = False
    brings_tools: bool = False
    tell_id: bool = False
    keep_id: bool = False
    child: ChildOptions | None = None
    stay: bool = False

    def with_extra(self, extra: str) -> SessionRequest:
        """Return the request with this text appended to the system prompt."""
        return replace(self, extra=extra)

"""The protocols that the core needs and other packages implement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from re import Pattern
from typing import TYPE_CHECKING, Literal, Protocol

from hermes.codec.values import Value
from hermes.core.caps import Caps
from hermes.core.commands import Command
from hermes.core.effects import Decision, Effect, FetchUrl, Principal, RunCommand, Scope
from hermes.core.events import CallSettled, DurableEvent, ModelCalled, Record
from hermes.core.messages import Usage
from hermes.core.prompt import Delta, Prompt, Reply

if TYPE_CHECKING:
    import asyncio


class Provider(Protocol):
    """Access to a model. Yields deltas, then one Reply as the last item; raises ProviderError.
    Middlewares (retry, fallback, metering) are providers too."""

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]: ...


Middleware = Callable[[Provider], Provider]
"""Wraps a provider, or returns it unchanged if it has nothing to add."""


def wrap_provider(stack: Sequence[Middleware | None], provider: Provider) -> Provider:
    """Wrap the provider. The first entry of `stack` sees a prompt first and its reply last."""
    for middleware in reversed(stack):
        if middleware is not None:
            provider = middleware(provider)
    return provider


class Meter(Protocol):
    """Books every model request of one session."""

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        """Reserve the cost of a call; durable when it returns. Raise BudgetReached when a cap does
        not even allow `least`. Return what was granted: `call.reserved` itself without a cap, else
        at most that much, and the reply must stay within it."""
        ...

    def settle(self, settled: CallSettled) -> None:
        """Book the final cost of a call. It becomes durable with the next commit."""
        ...


class ConversationText(Protocol):
    """Which exact texts occur in a conversation."""

    def user_wrote(self, text: str) -> bool:
        """Whether the person wrote the text."""
        ...

    def occurs(self, text: str) -> bool:
        """Whether the text occurs anywhere: written by the person, or in a page, file or tool
        result."""
        ...

    def in_results(self, text: str, origin: str = "") -> bool:
        """Whether tool results contain the text, also inside a longer text; with an origin, only
        results of that origin count."""
        ...

    def user_matches(self, pattern: Pattern[str]) -> bool:
        """Whether the pattern matches somewhere in what the person wrote."""
        ...

    def results_match(self, pattern: Pattern[str]) -> bool:
        """Whether the pattern matches somewhere in tool results."""
        ...


class Policy(Protocol):
    """Decides whether each effect is allowed. Pure except for what `remember` stored."""

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision: ...

    def origin(self, effect: Effect) -> str:
        """Return the source of the text that this effect brings into view; "" for the workspace."""
        ...

    def remember(self, effect: Effect, scope: Scope) -> None:
        """Store that a person allowed this effect for the session or for good."""
        ...


class Lease(Value):
    """The right to write a session. One process holds it; it is void once a higher fence exists."""

    session_id: str
    owner: str
    fence: int


class InboxCommand(Value):
    """A command that another process left for the owner of a session."""

    id: int
    command: Command


class Journal(Protocol):
    """The append-only source of truth. Every method may raise JournalError."""

    async def create(
        self, session_id: str, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Lease, tuple[Record, ...]]:
        """Create a session with its first events in one commit, and acquire its lease."""
        ...

    async def acquire(self, session_id: str) -> Lease:
        """Acquire the lease of a session. Raise SessionBusy while a living process holds it, and
        NotFound for an unknown session."""
        ...

    async def release(self, lease: Lease, *, soon: bool = False) -> None:
        """Give the lease back. The session is free when this returns; with `soon` a moment later,
        but before the next `acquire` of this process. If the journal cannot be written now, the
        session becomes free with the next write that succeeds; that is not an error."""
        ...

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        """Append events, all or nothing, numbered without gaps; durable when it returns. Raise
        Fenced when the lease is void. A MessageReceived with a known key is left out."""
        ...

    async def book(
        self,
        lease: Lease,
        events: Sequence[DurableEvent],
        call: ModelCalled,
        *,
        least: Usage,
        caps: Caps,
        turn_id: str = "",
    ) -> tuple[Record, ...]:
        """Append the events and the call, reserving as much as the caps leave, counted over all
        processes. Raises BudgetReached when less than `least` is left; then nothing is written."""
        ...

    async def read(self, session_id: str, *, after: int = 0) -> tuple[Record, ...]:
        """Return the records of a session in order, without damaged ones. A fork begins with the
        records that it shares with its parents. Raise NotFound for an unknown session."""
        ...

    async def post(self, session_id: str, command: Command, *, key: str = "") -> None:
        """Leave a command for the owner of the session. Each key is stored once."""
        ...

    async def pending_commands(self, lease: Lease) -> tuple[InboxCommand, ...]:
        """Return the commands left for the owner, oldest first. They stay until `acknowledge`."""
        ...

    async def acknowledge(self, lease: Lease, ids: Sequence[int]) -> None: ...


class FetchResponse(Value):
    """An HTTP response."""

    # The address after all redirects.
    url: str
    status: int
    # Names are in lower case.
    headers: dict[str, str]
    body: bytes
    # The body is longer than requested.
    cut: bool = False


class Fetcher(Protocol):
    """Access to the web. Connects only to addresses that the policy allowed."""

    async def fetch(
        self,
        effect: FetchUrl,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        max_bytes: int = 5_000_000,
        timeout: float = 30,
        passing: Callable[[FetchUrl], None] = lambda _: None,
    ) -> FetchResponse:
        """Follow redirects, each judged like a new address; `passing` is called with each first and
        may raise. Raises EffectDenied when an address is denied, ToolError when no response comes
        in time. An error status is a response."""
        ...


class FileInfo(Value):
    path: str
    kind: Literal["file", "folder", "other"]
    size: int
    modified_ns: int


class SearchQuery(Value):
    """A search in the files of a workspace."""

    # A regular expression for content, a glob for files.
    pattern: str
    # Absolute.
    root: str
    target: Literal["content", "files"] = "content"
    # Limits the search to files with such names.
    glob: str = ""
    context: int = 0
    hidden: bool = False


class SearchMatch(Value):
    path: str
    line: int
    text: str
    is_context: bool = False


class SearchResult(Value):
    """Content matches by path and line; files newest first. `cut` means that the search stopped
    early."""

    matches: tuple[SearchMatch, ...] = ()
    files: tuple[str, ...] = ()
    cut: bool = False


class CommandResult(Value):
    """The result of a shell command."""

    # Stdout and stderr in the order they came, cut in the middle to the requested size.
    output: str
    exit_code: int
    # The shell's folder afterwards.
    cwd: str
    # What the command wrote.
    total_bytes: int = 0
    timed_out: bool = False
    interrupted: bool = False


class ProcessInfo(Value):
    """A background process. `output` is its newest text, as far as requested."""

    id: str
    command: str
    cwd: str
    pid: int
    started_at: float
    status: Literal["running", "exited"]
    exit_code: int | None = None
    notify: bool = False
    # A notice of this process may follow.
    is_watched: bool = False
    output: str = ""
    total_lines: int = 0


class ProcessNotice(Value):
    """A background process ended, or a watched pattern appeared. `key` is unique. `sources` are
    those of the text, if it does not come from a local program."""

    key: str
    process_id: str
    text: str
    sources: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return ", ".join((f"process:{self.process_id}", *self.sources))


class Processes(Protocol):
    """The background processes of one session."""

    async def list(self) -> tuple[ProcessInfo, ...]: ...

    async def poll(self, process_id: str) -> ProcessInfo:
        """Return the process with its output since the last poll. Raises NotFound for an unknown
        id."""
        ...

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        """Return the process with `limit` lines of output from line `offset`, counted from 0. A
        negative offset counts from the end."""
        ...

    async def wait(
        self, process_id: str, *, timeout: float, stop: asyncio.Event
    ) -> ProcessInfo: ...

    async def write(self, process_id: str, data: str) -> ProcessInfo: ...

    async def close(self, process_id: str) -> ProcessInfo:
        """Close the input of the process."""
        ...

    async def kill(self, process_id: str) -> ProcessInfo:
        """Kill the whole process tree."""
        ...

    def notices(self) -> AsyncIterator[ProcessNotice]: ...


class ShellSetup(Value):
    """Definitions of earlier commands in a shell that change the meaning of later commands."""

    # Functions and aliases in bash syntax.
    definitions: str = ""
    # Definitions from the person's start-up files.
    own: str = ""
    # The names of exported variables.
    variables: tuple[str, ...] = ()
    # PATH if it was set.
    path: str = ""


class Workspace(Protocol):
    """The files and commands of one session. Methods take absolute paths; `resolve` makes a path
    absolute, relative to the shell's current folder, with links followed."""

    @property
    def root(self) -> str:
        """The folder that the session was opened in."""
        ...

    @property
    def cwd(self) -> str:
        """The shell's current folder."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether it is on another machine. Then its paths have no meaning here, and `resolve` may
        wait for a response, so call it from a thread."""
        ...

    @property
    def shell(self) -> ShellSetup: ...

    @property
    def processes(self) -> Processes: ...

    def resolve(self, path: str) -> str: ...

    async def stat(self, path: str) -> FileInfo | None: ...

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]: ...

    async def read_bytes(self, path: str) -> bytes: ...

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file atomically. Create parent folders and keep the mode of an existing file."""
        ...

    async def delete(self, path: str) -> None: ...

    async def search(self, query: SearchQuery) -> SearchResult: ...

    async def run(
        self,
        effect: RunCommand,
        *,
        timeout: float,
        stop: asyncio.Event,
        max_bytes: int,
        pty: bool = False,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run in the persistent shell. Setting `stop` kills the whole process group. `env` are
        variables for this command only."""
        ...

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo: ...

    async def scratch(self, name: str, data: bytes) -> str:
        """Store bytes outside the project under this name. Return a path that tools can read."""
        ...

    async def close(self) -> None: ...

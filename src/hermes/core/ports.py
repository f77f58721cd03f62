"""Where rooms meet: the protocols that the core needs and other rooms fulfil."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
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
    """A way to a model. Yields deltas, then one Reply, last; raises ProviderError.
    Wrappers (retry, fallback, metering) are providers too."""

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]: ...


class Meter(Protocol):
    """Books every request to a model of one session."""

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        """Durable when it returns; BudgetReached when a cap does not even allow `least`. What was
        granted: `call.reserved` itself where no cap is set, else at most as much, and then the
        answer must be kept within it."""
        ...

    def settle(self, settled: CallSettled) -> None:
        """Durable with the next commit."""
        ...


class Seen(Protocol):
    """What stands in a conversation, word by word."""

    def said(self, text: str) -> bool:
        """The person wrote it."""
        ...

    def shown(self, text: str) -> bool:
        """Somebody wrote it: the person, a page, a file or another tool's result."""
        ...

    def found(self, text: str, origin: str = "") -> bool:
        """It stands in what tools brought, also as a part of something longer; with an origin, in
        what came from there."""
        ...


class Policy(Protocol):
    """One function decides every effect. Pure but for what `remember` was told."""

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: Seen | None = None,
    ) -> Decision: ...

    def origin(self, effect: Effect) -> str:
        """Where the words come from that this effect brings into view; "" for here."""
        ...

    def remember(self, effect: Effect, scope: Scope) -> None:
        """A person allowed this effect for the session or for ever."""
        ...


class Lease(Value):
    """The right to write a session: held by one process, void once a higher fence exists."""

    session_id: str
    owner: str
    fence: int


class Waiting(Value):
    """A command that another process left for the owner of a session."""

    id: int
    command: Command


class Journal(Protocol):
    """The append-only truth. Every method may raise JournalError."""

    async def create(
        self, session_id: str, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Lease, tuple[Record, ...]]:
        """Begin a session with its first events, in one commit, and own it."""
        ...

    async def acquire(self, session_id: str) -> Lease:
        """Own an existing session; SessionBusy while a living process does, NotFound."""
        ...

    async def release(self, lease: Lease, *, soon: bool = False) -> None:
        """The session is free when this returns; with `soon` a moment later, but before the next
        `acquire` of this process. If the journal cannot be written now, the session becomes free
        with the next write that succeeds; that is no error."""
        ...

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        """Durable when it returns, all or nothing, numbered without gaps. Fenced when the lease
        is void. A MessageReceived whose key the session has already is left out."""
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
        """Append the events and the call, with as much reserved for it as the caps leave, counted
        over all processes. BudgetReached when they do not leave `least`; then nothing is
        written."""
        ...

    async def read(self, session_id: str, *, after: int = 0) -> tuple[Record, ...]:
        """The records of a session in order, damaged ones left out; NotFound. A fork begins with
        the records that it shares with its parents."""
        ...

    async def post(self, session_id: str, command: Command, *, key: str = "") -> None:
        """Leave a command for the owner of the session; the same key is left once."""
        ...

    async def take(self, lease: Lease) -> tuple[Waiting, ...]:
        """Commands left for the owner, oldest first; they stay until `taken`."""
        ...

    async def taken(self, lease: Lease, ids: Sequence[int]) -> None: ...


class Fetched(Value):
    """An answer from the web. `url` is where it came from after all redirects; header names are in
    lower case; `cut` when the body is longer than what was wanted of it."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool = False


class Fetcher(Protocol):
    """The way to the web. It connects to addresses that were judged and to no others."""

    async def fetch(
        self,
        effect: FetchUrl,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        max_bytes: int = 5_000_000,
        timeout: float = 30,
        passing: Callable[[FetchUrl], None] = lambda _: None,
    ) -> Fetched:
        """Follows redirects, each judged like a new address; `passing` is told each of them first
        and may raise. EffectDenied when an address is refused, ToolError when there is no answer
        within the time. An answer with an error status is an answer."""
        ...


class FileInfo(Value):
    path: str
    kind: Literal["file", "folder", "other"]
    size: int
    modified_ns: int


class SearchQuery(Value):
    """`root` is absolute. `glob` narrows file names. For files, `pattern` is a glob too."""

    pattern: str
    root: str
    target: Literal["content", "files"] = "content"
    glob: str = ""
    context: int = 0
    hidden: bool = False


class Match(Value):
    path: str
    line: int
    text: str
    is_context: bool = False


class SearchFound(Value):
    """Content matches by path and line; files newest first. `cut` when the engine stopped early."""

    matches: tuple[Match, ...] = ()
    files: tuple[str, ...] = ()
    cut: bool = False


class CommandResult(Value):
    """`output` is stdout and stderr as they came, cut in the middle to the wanted size;
    `total_bytes` is what the command really wrote. `cwd` is where the shell is now."""

    output: str
    exit_code: int
    cwd: str
    total_bytes: int = 0
    timed_out: bool = False
    interrupted: bool = False


class ProcessInfo(Value):
    """A background process. `output` is its newest text as far as asked for."""

    id: str
    command: str
    cwd: str
    pid: int
    started_at: float
    status: Literal["running", "exited"]
    exit_code: int | None = None
    notify: bool = False
    output: str = ""
    total_lines: int = 0


class ProcessNotice(Value):
    """News of a background process: it ended, or a watched pattern came up. `key` is unique."""

    key: str
    process_id: str
    text: str


class Processes(Protocol):
    """The background processes of one session."""

    async def list(self) -> tuple[ProcessInfo, ...]: ...

    async def poll(self, process_id: str) -> ProcessInfo:
        """With the output since the last poll; NotFound."""
        ...

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        """With `limit` lines from line `offset`, counted from 0; a negative offset from the end."""
        ...

    async def wait(
        self, process_id: str, *, timeout: float, stop: asyncio.Event
    ) -> ProcessInfo: ...

    async def write(self, process_id: str, data: str) -> ProcessInfo: ...

    async def close(self, process_id: str) -> ProcessInfo:
        """End of input."""
        ...

    async def kill(self, process_id: str) -> ProcessInfo:
        """The whole process tree."""
        ...

    def notices(self) -> AsyncIterator[ProcessNotice]: ...


class ShellSetup(Value):
    """What commands have left in a shell that decides what names mean in the next one:
    `definitions` are functions and aliases as bash writes them, `variables` the names of those
    that were exported, `path` is PATH if one was set. `own` are the definitions that come from the
    person's start files."""

    definitions: str = ""
    own: str = ""
    variables: tuple[str, ...] = ()
    path: str = ""


class Workspace(Protocol):
    """Where files and commands of one session live. Paths given to methods are absolute;
    `resolve` makes them so, against the shell's present directory, with links followed."""

    @property
    def root(self) -> str:
        """The folder that the session was opened in."""
        ...

    @property
    def cwd(self) -> str:
        """Where the shell is now."""
        ...

    @property
    def far(self) -> bool:
        """Another machine: its paths mean nothing on this one, and `resolve` may have to wait for
        an answer, so it is to be called from a thread."""
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
        """Whole or not at all; parents are made, the mode of an existing file is kept."""
        ...

    async def delete(self, path: str) -> None: ...

    async def search(self, query: SearchQuery) -> SearchFound: ...

    async def run(
        self,
        effect: RunCommand,
        *,
        timeout: float,
        stop: asyncio.Event,
        max_bytes: int,
        pty: bool = False,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run in the persistent shell; when `stop` is set the whole process group dies."""
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
        """Keep bytes outside the project under this name; the path, readable by tools."""
        ...

    async def close(self) -> None: ...

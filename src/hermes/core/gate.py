"""The one way from a tool to the world: every effect is decided here, whatever its route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from hermes.codec.values import replace
from hermes.core.effects import (
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Effect,
    Principal,
    ReadPath,
    RunCommand,
    Scope,
    SignalProcess,
    WritePath,
)
from hermes.core.errors import EffectDenied
from hermes.core.ports import (
    CommandResult,
    FileInfo,
    Policy,
    Processes,
    ProcessInfo,
    ProcessNotice,
    SearchFound,
    SearchQuery,
    Workspace,
)
from hermes.core.questions import DENY, Questions

ANYWHERE = ("/",)
SCOPES: dict[str, Scope] = {"session": "session", "always": "always"}


class Gate:
    """The gate of one session: the policy, and a person for what the policy leaves open."""

    def __init__(
        self,
        policy: Policy,
        questions: Questions,
        principal: Principal,
        origins: Callable[[], frozenset[str]],
    ) -> None:
        self._policy = policy
        self._questions = questions
        self._principal: Principal = principal
        self._origins = origins

    def judge(self, effect: Effect) -> Decision:
        return self._policy.decide(effect, self._principal, self._origins())

    async def allow(self, call_id: str, effect: Effect, stop: asyncio.Event) -> bool:
        """Returns when the effect may happen: whether that is because somebody said so. Else
        EffectDenied, with words for the model."""
        match self.judge(effect):
            case Allow(lifted=lifted):
                return lifted
            case Deny() as no:
                raise EffectDenied(
                    f"Not allowed: {no.reason} Do not retry or rephrase it; "
                    "find another way or tell the person."
                )
            case Ask() as asked:
                await self._ask(call_id, effect, asked, stop)
                return True

    async def _ask(self, call_id: str, effect: Effect, asked: Ask, stop: asyncio.Event) -> None:
        if not self._questions.attended:
            raise EffectDenied(
                f"Not allowed without approval, and nobody is here to give it: {asked.reason} "
                "Do not retry or rephrase it; say what would have to be approved."
            )
        choice, by = await self._questions.approve(call_id, effect, asked, stop)
        if choice == DENY:
            why = "no answer came in time" if by == "time" else "the person said no"
            raise EffectDenied(f"Not allowed: {why} ({asked.reason}) Do not retry or rephrase it.")
        if choice in SCOPES:
            self._policy.remember(effect, SCOPES[choice])


class CallGate:
    """The gate as one call sees it: what was allowed for the call is not asked again."""

    def __init__(self, gate: Gate, call_id: str, stop: asyncio.Event) -> None:
        self._gate = gate
        self._call_id = call_id
        self._stop = stop
        self._granted: list[Effect] = []
        self._wanted: list[Effect] = []

    async def require(self, effect: Effect) -> None:
        if effect not in self._granted:
            if await self._gate.allow(self._call_id, effect, self._stop):
                self._wanted.append(effect)
            self._granted.append(effect)

    async def opened(self, effect: RunCommand) -> RunCommand:
        """The command as it may run: what somebody has wanted is not confined."""
        await self.require(effect)
        return replace(effect, grants=ANYWHERE) if effect in self._wanted else effect

    def permits(self, effect: Effect) -> bool:
        """Allowed without a question."""
        return effect in self._granted or isinstance(self._gate.judge(effect), Allow)


class GatedWorkspace:
    """A workspace in which nothing happens before the gate has agreed."""

    def __init__(self, inner: Workspace, gate: CallGate) -> None:
        self._inner = inner
        self._gate = gate

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def cwd(self) -> str:
        return self._inner.cwd

    @property
    def far(self) -> bool:
        return self._inner.far

    @property
    def processes(self) -> Processes:
        return GatedProcesses(self._inner.processes, self._gate)

    def resolve(self, path: str) -> str:
        return self._inner.resolve(path)

    async def stat(self, path: str) -> FileInfo | None:
        await self._gate.require(ReadPath(path=path))
        return await self._inner.stat(path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        await self._gate.require(ReadPath(path=path))
        return await self._inner.list_folder(path)

    async def read_bytes(self, path: str) -> bytes:
        await self._gate.require(ReadPath(path=path))
        return await self._inner.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._gate.require(WritePath(path=path))
        await self._inner.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._gate.require(DeletePath(path=path))
        await self._inner.delete(path)

    async def search(self, query: SearchQuery) -> SearchFound:
        """Files that may not be read do not show up."""
        await self._gate.require(ReadPath(path=query.root))
        found = await self._inner.search(query)
        paths = {match.path for match in found.matches} | set(found.files)
        hidden = {path for path in paths if not self._gate.permits(ReadPath(path=path))}
        if not hidden:
            return found
        return SearchFound(
            matches=tuple(match for match in found.matches if match.path not in hidden),
            files=tuple(path for path in found.files if path not in hidden),
            cut=found.cut,
        )

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
        effect = await self._gate.opened(effect)
        return await self._inner.run(
            effect, timeout=timeout, stop=stop, max_bytes=max_bytes, pty=pty, on_output=on_output
        )

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        effect = await self._gate.opened(effect)
        return await self._inner.spawn(effect, notify=notify, watch=watch, pty=pty)

    async def scratch(self, name: str, data: bytes) -> str:
        return await self._inner.scratch(name, data)

    async def close(self) -> None:
        """A tool does not own the workspace, so it cannot close it."""


class GatedProcesses:
    def __init__(self, inner: Processes, gate: CallGate) -> None:
        self._inner = inner
        self._gate = gate

    async def list(self) -> tuple[ProcessInfo, ...]:
        return await self._inner.list()

    async def poll(self, process_id: str) -> ProcessInfo:
        return await self._inner.poll(process_id)

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        return await self._inner.log(process_id, offset=offset, limit=limit)

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        return await self._inner.wait(process_id, timeout=timeout, stop=stop)

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        await self._gate.require(SignalProcess(process_id=process_id, action="write"))
        return await self._inner.write(process_id, data)

    async def close(self, process_id: str) -> ProcessInfo:
        await self._gate.require(SignalProcess(process_id=process_id, action="close"))
        return await self._inner.close(process_id)

    async def kill(self, process_id: str) -> ProcessInfo:
        await self._gate.require(SignalProcess(process_id=process_id, action="kill"))
        return await self._inner.kill(process_id)

    def notices(self) -> AsyncIterator[ProcessNotice]:
        return self._inner.notices()

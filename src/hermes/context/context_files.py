"""What context files say, when a session begins and when it comes to their folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.context.harmless import ScanCache
from hermes.context.project_files import Scan, no_scan
from hermes.core.effects import Allow, ReadPath
from hermes.core.events import SessionOpened
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.ports import Policy, Workspace
from hermes.core.turn import Remark

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext


def nearby_files(
    run: RunContext, workspace: Workspace, policy: Policy, opened: SessionOpened
) -> Remark:
    """What context files of folders say that the session comes to later on."""

    def permits(path: str) -> bool:
        effect = ReadPath(path=path)
        return isinstance(policy.decide(effect, opened.principal, frozenset({"user"})), Allow)

    return _LazyNearby(workspace, permits, file_scan(run, opened.cwd))


class _LazyNearby:
    """Sessions without tools never load it."""

    def __init__(self, workspace: Workspace, permits: Callable[[str], bool], scan: Scan) -> None:
        self._workspace = workspace
        self._permits = permits
        self._scan = scan
        self._inner: Remark | None = None

    async def __call__(self, call: ToolCall, result: ToolResult) -> str:
        if self._inner is None:
            from hermes.context.project_files import FolderContext

            self._inner = FolderContext(self._workspace, self._permits, known=(), scan=self._scan)
        return await self._inner(call, result)


def file_scan(run: RunContext, cwd: str) -> Scan:
    """What files pass before they are shown to a model that works in this folder. A person is told
    what was found; folders that they trust are only warned about."""
    wanted = run.settings.security.context_scan
    if wanted == "off":
        return no_scan
    if wanted == "block" and _is_trusted(cwd, run.settings.security.trusted_dirs):
        wanted = "warn"

    harmless = ScanCache(run.home)

    def scan(name: str, text: str) -> str:
        if harmless.is_known_safe(text):
            return text
        # Few folders have such files, and fewer have new ones.
        from hermes.policy.scan.context import judge_context

        found = judge_context(text)
        if not found.suspicious:
            harmless.add(text)
            return text
        if wanted == "block":
            run.notices.append(found.blocked(name))
            return found.blocked(name)
        run.notices.append(found.warning(name))
        return f"{found.warning(name)}\n\n{text}"

    return scan


def _is_trusted(cwd: str, folders: tuple[str, ...]) -> bool:
    if not folders or not cwd:
        return False
    here = Path(cwd).resolve()
    return any(here.is_relative_to(Path(each).expanduser().resolve()) for each in folders)

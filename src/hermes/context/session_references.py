"""Resolves `@` references in a user's message, within the limits of the policy."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.context.references import ATTACHED, WARNINGS
from hermes.core.effects import Allow, Effect, FetchUrl, ReadPath, RunCommand
from hermes.core.errors import ToolError
from hermes.core.messages import user_says
from hermes.core.ports import FileInfo
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.context.references import ExpandedMessage, ReferencePage
    from hermes.models.models import Models

GIT_SECONDS = 30
PAGE_SECONDS = 30
MAX_BYTES = 2_000_000


def without_attachments(text: str) -> str:
    """The text that the user typed, without attachments."""
    for mark in (WARNINGS, ATTACHED):
        text = text.partition(f"\n\n{mark}\n")[0]
    return text


async def expand_references(
    run: RunContext, models: Models, session: Session, text: str
) -> ExpandedMessage:
    """The message with its references attached. Failures become warnings."""
    from hermes.context.references import expand_references

    transcript = session.transcript
    window = models.window(transcript.model, transcript.provider)
    found = await expand_references(text, SessionSources(run, session), window=window)
    if found.pages:
        # With their own origin, so that they do not count as the user's words.
        await session.import_messages(
            [user_says(page.text, origin=page.origin) for page in found.pages]
        )
    return found


async def complete_path(session: Session, prefix: str, limit: int = 20) -> list[FileInfo]:
    """Completions for the beginning of a path."""
    workspace = session.workspace
    folder, _, name = prefix.rpartition("/")
    try:
        entries = await workspace.list_folder(workspace.resolve(folder or "."))
    except (ToolError, OSError):
        return []
    matches = [each for each in entries if posixpath.basename(each.path).startswith(name)]
    visible = [
        each for each in matches if name or not posixpath.basename(each.path).startswith(".")
    ]
    return sorted(visible, key=lambda each: (each.kind != "folder", each.path))[:limit]


class SessionSources:
    """`context.references.Sources` over a session's workspace."""

    def __init__(self, run: RunContext, session: Session) -> None:
        self._run = run
        self._session = session
        self._workspace = session.workspace

    async def file(self, path: str) -> bytes:
        real = self._authorize_path(path)
        info = await self._workspace.stat(real)
        if info is None:
            raise ToolError("there is no such file.")
        if info.kind != "file":
            raise ToolError("it is not a file.")
        if info.size > MAX_BYTES:
            raise ToolError(f"it has {info.size:,} bytes, too many to attach.")
        return await self._workspace.read_bytes(real)

    async def folder(self, path: str) -> Sequence[FileInfo]:
        real = self._authorize_path(path)
        info = await self._workspace.stat(real)
        if info is None or info.kind != "folder":
            raise ToolError("there is no such folder.")
        return await self._workspace.list_folder(real)

    async def git(self, arguments: str) -> str:
        effect = RunCommand(script=f"git --no-pager {arguments}", cwd=self._workspace.root)
        self._permit(effect)
        done = await self._workspace.run(
            effect, timeout=GIT_SECONDS, stop=asyncio.Event(), max_bytes=MAX_BYTES
        )
        if done.timed_out:
            raise ToolError(f"git took longer than {GIT_SECONDS} s.")
        if done.exit_code:
            raise ToolError(done.output.strip().partition("\n")[0] or "git failed.")
        return done.output

    async def page(self, url: str) -> ReferencePage:
        """The readable text of a web page."""
        from hermes.context.references import ReferencePage
        from hermes.policy.outgoing import host_of
        from hermes.web.reading import extract_text

        if self._session.busy:
            raise ToolError("a page can be attached when no turn is running.")
        effect = FetchUrl(url=url)
        self._permit(effect)
        fetched = await self._session.web.fetch(
            effect, max_bytes=MAX_BYTES, timeout=PAGE_SECONDS, passing=self._permit
        )
        text = await asyncio.to_thread(extract_text, fetched)
        return ReferencePage(text=text, origin=f"web:{host_of(fetched.url)}")

    def _authorize_path(self, path: str) -> str:
        """The resolved path, if it may be attached."""
        from hermes.policy.places.files import Files

        root = self._workspace.root
        decision = Files(os.path.realpath(root), self._run.user_home, self._run.state_dir).refer(
            path
        )
        if not isinstance(decision, Allow):
            raise ToolError(decision.reason)
        real = self._workspace.resolve(posixpath.join(root, path))
        self._permit(ReadPath(path=real))
        return real

    def _permit(self, effect: Effect) -> None:
        decision = self._session.judge(effect)
        if not isinstance(decision, Allow):
            raise ToolError(decision.reason)

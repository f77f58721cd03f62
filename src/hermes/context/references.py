"""Expands `@` references in a user's message, within the limits of the policy."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.codec.tokens import estimate_tokens
from hermes.codec.values import Value
from hermes.core.effects import Allow, Effect, FetchUrl, ReadPath, RunCommand
from hermes.core.errors import HermesError, ToolError
from hermes.core.messages import ATTACHED, WORKSPACE, user_says
from hermes.core.ports import FileInfo
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.models.models import Models

WARNINGS = "--- Context Warnings ---"
# The first line of an attached reference.
_HEAD = re.compile(r"^\S+ (@.+) \(\d+ tokens\)$", re.MULTILINE)

_MENTION = re.compile(
    r"""(?x) (?<![\w/@.]) @ (?:
      (?P<word> diff | staged ) (?![\w:/-]|\.\w)
    | (?P<kind> file | folder | git | url ) :
      (?: "(?P<double>[^"\n]+)" | '(?P<single>[^'\n]+)' | `(?P<tick>[^`\n]+)`
      | (?P<bare>[^\s"'`]+) )
    )"""
)
_LINES = re.compile(
    r"(?: :(?P<first>\d+)(?:-(?P<last>\d+)|:\d+)? | \#L(?P<from>\d+)(?:-L?(?P<to>\d+))? )$", re.X
)
_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}
SIGNS = {"file": "📄", "folder": "📁", "url": "🌐"}
ABOVE = "It is in the previous message."
MOST_ENTRIES = 200
MOST_COMMITS = 10
MOST_COMPLETIONS = 20
WARN_SHARE, REFUSE_SHARE = 0.25, 0.5
GIT_SECONDS = 30
PAGE_SECONDS = 30
MAX_BYTES = 2_000_000


class Mention(Value):
    """One reference in a message."""

    kind: str
    target: str
    # Range of characters in the message.
    start: int
    end: int
    # Range of lines, from 1; 0 means all.
    first: int = 0
    last: int = 0

    @property
    def label(self) -> str:
        return f"@{self.kind}:{self.target}" if self.target else f"@{self.kind}"


class ReferencePage(Value):
    """A web page as untrusted text from `origin`."""

    text: str
    origin: str


class ExpandedMessage(Value):
    """A message with its references attached."""

    # The message to send.
    text: str
    # For the person.
    warnings: tuple[str, ...] = ()
    tokens: int = 0
    # Untrusted text that precedes the message.
    pages: tuple[ReferencePage, ...] = ()


def without_attachments(text: str) -> str:
    """Return the text that the user typed, without attachments."""
    for mark in (WARNINGS, ATTACHED):
        text = text.partition(f"\n\n{mark}\n")[0]
    return text


def typed_text(text: str) -> str:
    """Return the text that the user typed, with the references that were attached to it."""
    typed, attached = without_attachments(text), text.partition(f"\n\n{ATTACHED}\n")[2]
    labels = [label for label in _HEAD.findall(attached) if label not in typed]
    return " ".join((typed, *dict.fromkeys(labels))).strip()


async def expand_references(
    run: RunContext, models: Models, session: Session, text: str
) -> ExpandedMessage:
    """Return the message with its references attached. Failures become warnings."""
    transcript = session.transcript
    window = models.window(transcript.model, transcript.provider)
    expanded = await _expand(text, SessionSources(run, session), window)
    if expanded.pages:
        # With their own origin, so that they do not count as the user's words.
        await session.import_messages(
            [user_says(page.text, origin=page.origin) for page in expanded.pages]
        )
    return expanded


async def complete_path(session: Session, prefix: str) -> list[FileInfo]:
    """Return completions for the beginning of a path."""
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
    return sorted(visible, key=lambda each: (each.kind != "folder", each.path))[:MOST_COMPLETIONS]


def find_mentions(text: str) -> tuple[Mention, ...]:
    mentions: list[Mention] = []
    for match in _MENTION.finditer(text):
        if word := match["word"]:
            mentions.append(Mention(kind=word, target="", start=match.start(), end=match.end()))
            continue
        quoted = match["double"] or match["single"] or match["tick"]
        target = quoted or _trim(match["bare"])
        end = match.end() if quoted else match.start("bare") + len(target)
        kind, first, last = match["kind"], 0, 0
        lines = _LINES.search(target) if kind == "file" else None
        if lines and lines.start():
            target = target[: lines.start()]
            first = int(lines["first"] or lines["from"])
            last = int(lines["last"] or lines["to"] or first)
        if target:
            mentions.append(
                Mention(
                    kind=kind, target=target, start=match.start(), end=end, first=first, last=last
                )
            )
    return tuple(mentions)


async def _expand(text: str, sources: SessionSources, window: int) -> ExpandedMessage:
    """Resolve all references concurrently. If the total is too large, the message stays
    unchanged."""
    mentions = find_mentions(text)
    if not mentions:
        return ExpandedMessage(text=text)
    resolved = await asyncio.gather(*(_resolve(each, sources) for each in mentions))
    blocks = [block for block in resolved if isinstance(block, ReferenceBlock)]
    warnings = [block for block in resolved if isinstance(block, str)]
    tokens = sum(block.tokens for block in blocks)
    if tokens > window * REFUSE_SHARE:
        why = f"The references take about {tokens:,} tokens, over half of the model's window; "
        return ExpandedMessage(text=text, warnings=(why + "nothing was attached.",), tokens=tokens)
    if tokens > window * WARN_SHARE:
        warnings.append(f"The references take about {tokens:,} of {window:,} tokens.")
    bare, at = "", 0
    for mention in mentions:
        bare += text[at : mention.start]
        at = mention.end
    parts = [re.sub(r"[ \t]{2,}", " ", bare + text[at:]).strip()]
    if warnings:
        parts.append("\n".join((WARNINGS, *(f"- {each}" for each in warnings))))
    if blocks:
        parts.append("\n\n".join((ATTACHED, *(block.shown for block in blocks))))
    pages = tuple(
        ReferencePage(text=f"{block.head}\n{block.text}", origin=block.origin)
        for block in blocks
        if block.origin
    )
    return ExpandedMessage(
        text="\n\n".join(parts), warnings=tuple(warnings), tokens=tokens, pages=pages
    )


class ReferenceBlock(Value):
    """The resolved content of a reference; untrusted if it has an `origin`."""

    label: str
    sign: str
    text: str
    origin: str = ""

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)

    @property
    def head(self) -> str:
        return f"{self.sign} {self.label} ({self.tokens} tokens)"

    @property
    def shown(self) -> str:
        return f"{self.head}\n{ABOVE if self.origin else self.text}"


async def _resolve(mention: Mention, sources: SessionSources) -> ReferenceBlock | str:
    origin = ""
    try:
        match mention.kind:
            case "file":
                text = await _file(mention, sources)
                origin = sources.untrusted_origin(mention.target)
            case "folder":
                text = await _folder(mention, sources)
            case "url":
                page = await sources.page(mention.target)
                text, origin = page.text, page.origin
            case "diff":
                text = await _fenced_git(sources, "diff")
            case "staged":
                text = await _fenced_git(sources, "diff --staged")
            case _:
                count = int(mention.target) if mention.target.isdecimal() else 1
                text = await _fenced_git(sources, f"log -{max(1, min(MOST_COMMITS, count))} -p")
    except HermesError as error:
        return f"{mention.label}: {error}"
    if not text.strip():
        return f"{mention.label}: it is empty."
    sign = SIGNS.get(mention.kind, "🧾")
    # Attached text is not the person's own words.
    clean = sources.redact(text)
    return ReferenceBlock(label=mention.label, sign=sign, text=clean, origin=origin)


async def _file(mention: Mention, sources: SessionSources) -> str:
    data = await sources.file(mention.target)
    if b"\0" in data[:8_000]:
        return f"(binary, {len(data):,} bytes; look at {mention.target} with tools)"
    rows = data.decode("utf-8", "replace").splitlines()
    if mention.first:
        if mention.first > len(rows):
            raise ToolError(f"line {mention.first} does not exist; the file has {len(rows)} lines.")
        rows = rows[mention.first - 1 : mention.last or mention.first]
    suffix = posixpath.splitext(mention.target)[1].lstrip(".")
    return _fence("\n".join(rows), suffix) if rows else ""


async def _folder(mention: Mention, sources: SessionSources) -> str:
    """The tree below a folder; folders that may not be read are named only."""
    rows: list[str] = []

    async def add(path: str, depth: int) -> None:
        entries = sorted(await sources.folder(path), key=lambda each: each.path)
        for each in entries:
            name = posixpath.basename(each.path)
            if name.startswith(".") or name == "__pycache__" or len(rows) > MOST_ENTRIES:
                continue
            is_folder = each.kind == "folder"
            about = "/" if is_folder else f" ({each.size:,} bytes)"
            rows.append(f"{'  ' * depth}- {name}{about}")
            if is_folder:
                with suppress(ToolError):
                    await add(posixpath.join(path, name), depth + 1)

    await add(mention.target, 0)
    more = ["- ..."] if len(rows) > MOST_ENTRIES else []
    return "\n".join(rows[:MOST_ENTRIES] + more)


async def _fenced_git(sources: SessionSources, arguments: str) -> str:
    text = await sources.git(arguments)
    return _fence(text.rstrip("\n"), "diff") if text.strip() else ""


def _fence(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _trim(target: str) -> str:
    """Strip punctuation and brackets around the reference."""
    while target.strip("./"):
        last = target[-1]
        closes = last in _CLOSERS and target.count(last) > target.count(_CLOSERS[last])
        if not (last in ",.;!?" or closes):
            break
        target = target[:-1]
    return target.rstrip(",;!?")


class SessionSources:
    """Reads referenced files, folders, commits and pages. ToolError says why one fails."""

    def __init__(self, run: RunContext, session: Session) -> None:
        self._run = run
        self._session = session
        self._workspace = session.workspace
        self.redact = run.redactor.text

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
        """Return the readable text of a web page."""
        from hermes.policy.outgoing import host_of
        from hermes.web.reading import page_text, read_page

        if self._session.busy:
            raise ToolError("a turn is running; attach the page when it has ended.")
        effect = FetchUrl(url=url)
        self._permit(effect)
        fetched = await self._session.web.fetch(
            effect, max_bytes=MAX_BYTES, timeout=PAGE_SECONDS, passing=self._permit
        )
        text = page_text(await asyncio.to_thread(read_page, fetched))
        return ReferencePage(text=text, origin=f"web:{host_of(fetched.url)}")

    def untrusted_origin(self, path: str) -> str:
        """Return the origin of a file that is untrusted; "" for other files."""
        real = self._workspace.resolve(posixpath.join(self._workspace.root, path))
        origin = self._session.origin(ReadPath(path=real))
        return "" if origin.startswith(WORKSPACE) else origin

    def _authorize_path(self, path: str) -> str:
        """Return the resolved path, if it may be attached."""
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

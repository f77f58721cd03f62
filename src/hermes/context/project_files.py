"""Finds context files, scans them and limits how much of them is sent."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import Value
from hermes.config.home import Home, replace_file
from hermes.core.effects import Allow, ReadPath
from hermes.core.errors import ConfigError, ToolError
from hermes.core.events import SessionOpened
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.ports import Policy, Workspace

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

OWN_NAMES = (".hermes.md", "HERMES.md")
GUEST_NAMES = (("AGENTS.md", "agents.md"), ("CLAUDE.md", "claude.md"))
LEAST_CHARS = 20_000
MOST_CHARS = 500_000
SHARE = 0.06
HEAD, TAIL = 0.7, 0.2


# Maps name and text of a file to the text that may be shown, or to the reason why not.
Scan = Callable[[str, str], str]


def no_scan(_name: str, text: str) -> str:
    return text


class ProjectContext(Value):
    """The context files of a project as text for the prompt."""

    text: str = ""
    files: tuple[str, ...] = ()
    # For the person.
    warnings: tuple[str, ...] = ()


def project_context(
    cwd: Path, *, window: int, max_chars: int | None = None, scan: Scan = no_scan
) -> ProjectContext:
    """Return the first kind of context file that exists and is not empty; kinds are not mixed."""
    files = _find(cwd)
    if not files:
        return ProjectContext()
    limit = max_chars or limit_for(window)
    blocks: list[str] = []
    warnings: list[str] = []
    for path, text in files:
        name = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
        shown, cut = cut_middle(scan(name, text), limit, str(path))
        blocks.append(f"## {name}\n\n{shown}")
        if cut:
            warnings.append(f"{name} is long: {cut} characters in the middle are not sent.")
    return ProjectContext(
        text="# Project Context\n\n" + "\n\n".join(blocks),
        files=tuple(str(path) for path, _ in files),
        warnings=tuple(warnings),
    )


def limit_for(window: int) -> int:
    return max(LEAST_CHARS, min(MOST_CHARS, int(window * CHARS_PER_TOKEN * SHARE)))


def cut_middle(text: str, limit: int, path: str) -> tuple[str, int]:
    """Cut the middle of a long text; return the text and how much was cut."""
    if len(text) <= limit:
        return text, 0
    head, tail = text[: int(limit * HEAD)], text[-int(limit * TAIL) :]
    cut = len(text) - len(head) - len(tail)
    marker = f"\n\n[… {cut} of {len(text)} characters left out; read {path} for all of it …]\n\n"
    return head + marker + tail, cut


def _find(cwd: Path) -> list[tuple[Path, str]]:
    for folder in _up_to_git_root(str(cwd)):
        if own := _first(folder, OWN_NAMES):
            path, text = own
            _, closing, body = text.partition("\n---\n")
            has_frontmatter = text.startswith("---\n") and closing
            return [(path, body.strip() if has_frontmatter else text)]
    for names in GUEST_NAMES:
        if guest := _first(str(cwd), names):
            return [guest]
    rules = [".cursorrules"]
    if os.path.isdir(f"{cwd}/.cursor/rules"):  # noqa: PTH112 - see `_first`
        rules += (str(path) for path in sorted((cwd / ".cursor" / "rules").glob("*.mdc")))
    return [found for name in rules if (found := _first(str(cwd), (name,)))]


def _up_to_git_root(cwd: str) -> list[str]:
    folders = [cwd]
    while not os.path.exists(os.path.join(folders[-1], ".git")):  # noqa: PTH110, PTH118 - the same
        above = os.path.dirname(folders[-1])  # noqa: PTH120 - the same
        if above == folders[-1]:
            return [cwd]
        folders.append(above)
    return folders


def _first(folder: str, names: Iterable[str]) -> tuple[Path, str] | None:
    """Return the first of these files that exists and is not empty. Uses os.path instead of Path:
    every new session checks a dozen paths that rarely exist."""
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            with suppress(OSError):
                if text := Path(path).read_text("utf-8", "replace").strip():
                    return Path(path), text
    return None


NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
ARGUMENTS = ("path", "file_path", "workdir")
FOLDER_CONTEXT_CHARS = 8_000
MOST_PARENTS = 5
_WORD = re.compile(r"(?:[\w.@+-]*/)+[\w.@+-]*")


class FolderContext:
    """Adds the context files of folders that a session enters later; implements `Remark` of the
    core. Files that the policy would ask about are skipped."""

    def __init__(
        self, run: RunContext, workspace: Workspace, policy: Policy, opened: SessionOpened
    ) -> None:
        self._workspace = workspace
        self._policy = policy
        self._principal = opened.principal
        self._scan = file_scan(run, opened.cwd)
        self._seen: set[str] = set()

    async def __call__(self, call: ToolCall, _result: ToolResult) -> tuple[str, str]:
        found = [await self._read_context(folder) for folder in self._new_folders(call)]
        origins = dict.fromkeys(origin for _, origin in found if origin)
        return "".join(text for text, _ in found), ", ".join(origins)

    def _new_folders(self, call: ToolCall) -> list[str]:
        """Return new folders inside the workspace, outermost first."""
        root = self._workspace.root.rstrip("/")
        paths = [value for name in ARGUMENTS if isinstance(value := call.arguments.get(name), str)]
        if isinstance(command := call.arguments.get("command"), str):
            paths += _WORD.findall(command[:4_000])[:20]
        folders: dict[str, None] = {}
        for path in paths:
            if not path.strip() or "\0" in path:
                continue
            try:
                folder = posixpath.dirname(self._workspace.resolve(path))
            except (ToolError, OSError, ValueError):
                continue
            for start in (posixpath.join(folder, posixpath.basename(path)), folder):
                folders.update(dict.fromkeys(reversed(_parents_below(start, root))))
        new = [folder for folder in folders if folder not in self._seen]
        self._seen.update(new)
        return new

    async def _read_context(self, folder: str) -> tuple[str, str]:
        """Return the text of a folder's context file and its origin."""
        for name in NAMES:
            path = posixpath.join(folder, name)
            decision = self._policy.decide(
                ReadPath(path=path), self._principal, frozenset({"user"})
            )
            if not isinstance(decision, Allow):
                continue
            try:
                info = await self._workspace.stat(path)
                if info is None or info.kind != "file":
                    continue
                data = await self._workspace.read_bytes(path)
            except (ToolError, OSError):
                continue
            if text := data.decode("utf-8", "replace").strip():
                shown = posixpath.relpath(path, self._workspace.root)
                text, _ = cut_middle(self._scan(shown, text), FOLDER_CONTEXT_CHARS, path)
                origin = self._policy.origin(ReadPath(path=path))
                return f"\n\n<context file: {shown}>\n{text}\n</context>", origin
        return "", ""


def _parents_below(folder: str, root: str) -> list[str]:
    """Return the folder and some of its parents below the root."""
    found: list[str] = []
    while folder.startswith(root + "/") and len(found) <= MOST_PARENTS:
        found.append(folder)
        folder = posixpath.dirname(folder)
    return found


MAX_DIGESTS = 400
SCANNER = Path(__file__).parents[1] / "policy" / "scan"


class ScanCache:
    """Digests of safe texts in the home's cache, newest last. A changed scanner invalidates
    them."""

    def __init__(self, home: Home, scanner: Path = SCANNER) -> None:
        self._home = home
        self._path = home.cache / "harmless.txt"
        self._scanner = scanner

    def is_known_safe(self, text: str) -> bool:
        return self._digest(text) in self._digests()

    def add(self, text: str) -> None:
        digests = [*self._digests(), self._digest(text)]
        try:
            data = "\n".join(digests[-MAX_DIGESTS:]).encode()
            replace_file(self._home, self._path, data, durable=False)
        except ConfigError:
            # In a read-only home every text is scanned each time.
            return

    def _digests(self) -> list[str]:
        try:
            return self._path.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return []

    def _digest(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=20, key=self._scanner_key).hexdigest()

    @cached_property
    def _scanner_key(self) -> bytes:
        """A key that changes when any file of the scanner changes."""
        with os.scandir(self._scanner) as entries:
            files = sorted((each.name, each.stat()) for each in entries if each.is_file())
        facts = "".join(f"{name} {stat.st_size} {stat.st_mtime_ns};" for name, stat in files)
        return blake2b(facts.encode(), digest_size=32).digest()


def file_scan(run: RunContext, cwd: str) -> Scan:
    """Return the scan for files shown to a model working in this folder. Findings are reported to
    the user; in trusted folders they are warnings only."""
    mode = run.settings.security.context_scan
    if mode == "off":
        return no_scan
    trusted = [Path(each).expanduser() for each in run.settings.security.trusted_dirs if cwd]
    if any(Path(cwd).resolve().is_relative_to(each.resolve()) for each in trusted):
        mode = "warn"
    cache = ScanCache(run.home)

    def scan(name: str, text: str) -> str:
        if cache.is_known_safe(text):
            return text
        # Loaded only for texts that are not cached.
        from hermes.policy.scan.scanner import scan_context

        result = scan_context(text)
        if result.verdict == "safe":
            cache.add(text)
            return text
        if mode == "block" and result.suspicious:
            run.notices.append(result.blocked_text(name))
            return result.blocked_text(name)
        run.notices.append(result.warning(name))
        return f"{result.warning(name)}\n\n{text}"

    return scan

"""Scans context files before they enter a prompt, and caches the safe ones."""

from __future__ import annotations

import os
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.home import Home, replace_file
from hermes.context.project_files import FolderContext, Scan, no_scan
from hermes.core.effects import Allow, ReadPath
from hermes.core.errors import ConfigError
from hermes.core.events import SessionOpened
from hermes.core.ports import Policy, Workspace
from hermes.core.turn import Remark

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

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
        """Changes when any file of the scanner changes."""
        with os.scandir(self._scanner) as entries:
            files = sorted((each.name, each.stat()) for each in entries if each.is_file())
        facts = "".join(f"{name} {stat.st_size} {stat.st_mtime_ns};" for name, stat in files)
        return blake2b(facts.encode(), digest_size=32).digest()


def nearby_files(
    run: RunContext, workspace: Workspace, policy: Policy, opened: SessionOpened
) -> Remark:
    """Adds the context files of folders that the session enters later."""

    def permits(path: str) -> bool:
        effect = ReadPath(path=path)
        return isinstance(policy.decide(effect, opened.principal, frozenset({"user"})), Allow)

    return FolderContext(workspace, permits, known=(), scan=file_scan(run, opened.cwd))


def file_scan(run: RunContext, cwd: str) -> Scan:
    """The scan for files shown to a model working in this folder. Findings are reported to the
    user; in trusted folders they are warnings only."""
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

        found = scan_context(text)
        if not found.suspicious:
            cache.add(text)
            return text
        if mode == "block":
            run.notices.append(found.blocked_text(name))
            return found.blocked_text(name)
        run.notices.append(found.warning(name))
        return f"{found.warning(name)}\n\n{text}"

    return scan

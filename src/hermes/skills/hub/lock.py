"""Scans, trust decisions, lock file and audit log of the hub."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError, UsageError
from hermes.core.world import Clock
from hermes.skills.files import resolve_inside
from hermes.skills.hub.source import TRUSTED_REPOS, SourceTrust
from hermes.skills.skill import MAIN

if TYPE_CHECKING:
    from hermes.policy.scan.scanner import ScanResult

Verdict = Literal["safe", "caution", "dangerous"]
SCANNER = "policy.scan-1"

# Magic numbers of binary formats that are not scanned as text.
_BINARY_MAGIC = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"%PDF-",
    b"wOF2",
    b"wOFF",
    b"\x00\x01\x00\x00",
)


class Ruling(Value):
    allowed: bool
    reason: str = ""


def decide_ruling(
    trust: SourceTrust, verdict: Verdict, *, force: bool = False, only_resembles: bool = False
) -> Ruling:
    """Return the ruling for a verdict and a trust level. `force` overrides a caution, never a
    danger. A text that `only_resembles` an injection is not stopped."""
    if verdict == "safe" or trust == "builtin" or (trust == "trusted" and verdict == "caution"):
        return Ruling(allowed=True)
    if verdict == "dangerous":
        return Ruling(allowed=False, reason=f"The scan rates it dangerous ({trust} source).")
    if only_resembles:
        reason = "A passage resembles an injection; read the skill before you use it."
        return Ruling(allowed=True, reason=reason)
    if force:
        return Ruling(allowed=True, reason="Installed with --force despite a caution.")
    reason = "The scan advises caution; use --force to install it anyway."
    return Ruling(allowed=False, reason=reason)


def scan_files(files: Mapping[str, bytes]) -> ScanResult:
    """Scan the text of a skill and its other files."""
    # Slow to load; sessions read the hub's state without a scan.
    from hermes.policy.scan.scanner import TextScanner

    texts = {
        name: data.decode("utf-8", "replace")
        for name, data in files.items()
        if name != MAIN and not data.startswith(_BINARY_MAGIC)
    }
    return TextScanner().scan_skill(files[MAIN].decode("utf-8", "replace"), texts)


class InstalledSkill(Value):
    source: str
    identifier: str
    trust_level: SourceTrust
    scan_verdict: Verdict
    scanner: str
    content_hash: str
    install_path: str
    files: tuple[str, ...] = ()
    installed_at: str = ""
    updated_at: str = ""

    @property
    def digest(self) -> str:
        return self.content_hash.removeprefix("sha256:")


class LockFile(Value, omit_defaults=False):
    version: int = 1
    installed: dict[str, InstalledSkill] = {}


class SnapshotSkill(Value):
    """A skill to install, with its expected hash."""

    identifier: str
    name: str
    category: str = ""
    content_hash: str = ""


class HubSnapshot(Value, omit_defaults=False):
    version: int = 1
    taps: tuple[str, ...] = ()
    skills: tuple[SnapshotSkill, ...] = ()


def read_snapshot(raw: bytes) -> HubSnapshot:
    try:
        return decode(HubSnapshot, raw)
    except DecodeError as error:
        raise UsageError(f"The file is not a list of skills ({error}); choose another.") from error


class HubLedger:
    """The hub's state in `.hub` of a skills folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder / ".hub"
        self._skills = folder
        self._lock = self.folder / "lock.json"
        self._taps = self.folder / "taps.json"
        self._clock = clock

    def list_installed(self) -> dict[str, InstalledSkill]:
        """Return the installed skills by name. Raises ConfigError when the lock file is unreadable,
        so that nothing is overwritten."""
        try:
            return decode(LockFile, self._lock.read_bytes()).installed
        except FileNotFoundError:
            return {}
        except (OSError, DecodeError) as error:
            raise ConfigError(
                f"{self._lock} is not readable ({error}); fix or remove it."
            ) from error

    def snapshot(self) -> HubSnapshot:
        skills = tuple(
            SnapshotSkill(
                identifier=each.identifier,
                name=name,
                category=each.install_path.rpartition("/")[0],
                content_hash=each.content_hash,
            )
            for name, each in sorted(self.list_installed().items())
        )
        return HubSnapshot(taps=self.own_taps(), skills=skills)

    def hashes(self) -> dict[str, str]:
        """Return content hashes by name; empty when the lock file is unreadable."""
        try:
            return {name: each.digest for name, each in self.list_installed().items()}
        except ConfigError:
            return {}

    def folder_of(self, name: str, entry: InstalledSkill) -> Path:
        """Return the skill's folder. The lock file is not trusted: raises UsageError for a path
        that is not a skill of this name below the skills folder."""
        folder = self._skills / entry.install_path
        try:
            inside = resolve_inside(self._skills, entry.install_path) != self._skills.resolve()
        except UsageError:
            inside = False
        if not inside or folder.name != name or folder.is_symlink():
            raise UsageError(f"The lock file has an invalid path for {name}; nothing was changed.")
        return folder

    def write(self, name: str, entry: InstalledSkill | None) -> None:
        known = {key: each for key, each in self.list_installed().items() if key != name}
        if entry is not None:
            known[name] = entry
        replace_file(self._lock, encode(LockFile(installed=dict(sorted(known.items())))))

    def append_audit(
        self, action: str, name: str, source: str, trust: str, verdict: str, more: str
    ) -> None:
        """Append to the audit log."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fields = (self.timestamp(), action, name, source, trust, verdict, more)
        line = " ".join(" ".join(field.split()) or "-" for field in fields)
        with (self.folder / "audit.log").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def log(self) -> tuple[str, ...]:
        try:
            return tuple((self.folder / "audit.log").read_text(encoding="utf-8").splitlines())
        except OSError:
            return ()

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def taps(self) -> tuple[str, ...]:
        """Return the default repositories and the user's."""
        return tuple(dict.fromkeys((*TRUSTED_REPOS, *self.own_taps())))

    def own_taps(self) -> tuple[str, ...]:
        try:
            return decode(tuple[str, ...], self._taps.read_bytes())
        except (OSError, DecodeError):
            return ()

    def write_taps(self, taps: tuple[str, ...]) -> None:
        replace_file(self._taps, encode(taps))

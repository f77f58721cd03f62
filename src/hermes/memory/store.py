"""Memory files and ledger of one person: one transaction per change."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.file_lock import hold_lock
from hermes.codec.values import Value, replace
from hermes.core.world import World
from hermes.memory.entries import (
    FILE_NAMES,
    OWNER,
    TARGETS,
    ChangeSource,
    MemoryChange,
    MemoryEntry,
    Target,
    join_entries,
    split_entries,
)
from hermes.memory.ledger import LedgerError, MemoryLedger
from hermes.memory.planning import MemoryStep, Scan, entry_after

NOTHING = b"-"


class FileContent(Value):
    """Content of a file; `whole` is False when it is not valid UTF-8."""

    text: str
    digest: bytes
    whole: bool = True


def encode_entries(texts: list[str]) -> bytes:
    return (join_entries(texts) + "\n" if texts else "").encode()


def digest(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=16).digest()


SCANNED_BY = "scanned_by"


class MemoryStore:
    """The files and the ledger of one person, used by one thread. A new scanner `version` rescans
    all entries."""

    def __init__(self, folder: Path, *, world: World, scan: Scan, scope: str, version: str) -> None:
        self.scan = scan
        self.world = world
        self.ledger = MemoryLedger(folder / "ledger.db", scope)
        self._folder = folder
        self._version = version
        self._files = folder
        if scope != OWNER:
            # A unique folder name for every person.
            name = "".join(c if c.isalnum() and c.isascii() else f"%{ord(c):x}." for c in scope)
            self._files = folder / "people" / name
        self._seen: dict[Target, FileContent | None] = {}

    def path(self, target: Target) -> Path:
        return self._files / FILE_NAMES[target]

    def _read(self, target: Target) -> FileContent | None:
        """Return the content of a target's file, or None when there is no file."""
        try:
            raw = self.path(target).read_bytes()
        except FileNotFoundError:
            return None
        text = raw.decode("utf-8", "replace")
        return FileContent(text=text, digest=digest(raw), whole=text.encode() == raw)

    def keep_copy(self, target: Target) -> Path:
        """Write a backup beside the file."""
        path = self.path(target)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self.world.clock.now()))
        copy = path.with_name(f"{path.name}.bak.{stamp}")
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o600)
        return copy

    def is_untouched(self) -> bool:
        if self.ledger.path.exists():
            return False
        return not any(self.path(target).exists() for target in TARGETS)

    def is_current(self) -> bool:
        """Return whether existing files match the ledger."""
        if self.ledger.fact(SCANNED_BY) != self._version:
            return False
        for target in TARGETS:
            found, (wanted, _) = self._read(target), self.ledger.file(target)
            if (found.digest if found else b"") != wanted:
                return False
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction that commits everything or nothing. File edits are imported before, and
        files are written after."""
        with hold_lock(self._folder / ".lock"), _translate_errors():
            db = self.ledger.db
            db.execute("BEGIN IMMEDIATE")
            try:
                self._import_edits()
                yield
                due = [target for target in TARGETS if self._is_due(target)]
                self.world.kill_point("memory.before_commit")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self.world.kill_point("memory.committed")
            for target in due:
                replace_file(self.path(target), encode_entries(self.texts(target)))
            self.world.kill_point("memory.written")

    def scrub(self, patience_seconds: float) -> bool:
        """Scrub the ledger under the lock; return whether no deleted text remains."""
        with hold_lock(self._folder / ".lock"), _translate_errors():
            return self.ledger.scrub(patience_seconds)

    def texts(self, target: Target) -> list[str]:
        return [entry.text for entry in self.ledger.entries(target)]

    def initial_content(self, target: Target) -> FileContent | None:
        """Return the file's content at the start of the transaction."""
        return self._seen.get(target)

    def record(
        self,
        target: Target,
        steps: Sequence[MemoryStep],
        source: ChangeSource,
        *,
        held: str = "",
        settles: int = 0,
        reverts: int = 0,
        findings: Callable[[str], str] = lambda _text: "",
    ) -> tuple[int, ...]:
        """Record steps as changes and apply them unless held."""
        at = self.ledger.next_time(self.world.clock.now())
        made: list[int] = []
        for step in steps:
            change = MemoryChange(
                id=0,
                entry=step.entry or self.ledger.next_entry(),
                target=target,
                action=step.action,
                text=step.text,
                at=at,
                source=source,
                held=held,
                open=bool(held),
                settles=settles,
                reverts=reverts,
                finding=findings(step.text) if step.text else "",
            )
            number = self.ledger.put_change(change)
            if not held:
                self.ledger.drop_entry(change.entry)
                if step.action != "remove":
                    self.ledger.put_entry(entry_after(change, number))
            made.append(number)
        return tuple(made)

    def _import_edits(self) -> None:
        """Import manual edits of the files as changes."""
        for target in TARGETS:
            content = self._read(target)
            self._seen[target] = content
            wanted, before = self.ledger.file(target)
            # The previous content: the last writer crashed before it wrote the file.
            if content is None or content.digest in (wanted, before):
                continue
            if not content.whole:
                # The next write would drop the invalid bytes.
                self.keep_copy(target)
            steps = steps_for_edit(self.ledger.entries(target), split_entries(content.text))
            if steps:
                self.record(target, steps, ChangeSource(kind="file"), findings=self.scan)
        if self.ledger.fact(SCANNED_BY) != self._version:
            for entry in self.ledger.entries():
                finding = self.scan(entry.text)
                if finding != entry.finding:
                    self.ledger.put_entry(replace(entry, finding=finding))
            self.ledger.put_fact(SCANNED_BY, self._version)

    def _is_due(self, target: Target) -> bool:
        """Return whether the file must be written; first stores the digest of its new content."""
        texts, content = self.texts(target), self._seen[target]
        if content is None and not texts and self.ledger.file(target) == (b"", b""):
            return False
        if content is not None and content.whole and set(split_entries(content.text)) == set(texts):
            is_right, wanted, before = True, content.digest, b""
        else:
            is_right, wanted = False, digest(encode_entries(texts))
            before = content.digest if content else NOTHING
        if self.ledger.file(target) != (wanted, before):
            self.ledger.put_file(target, wanted, before)
        return not is_right


def steps_for_edit(entries: Sequence[MemoryEntry], texts: Sequence[str]) -> list[MemoryStep]:
    """Return the steps that make the entries match a file."""
    old = [entry.text for entry in entries]
    if set(old) == set(texts):
        return []
    # Slow to load and only needed for manual edits.
    from difflib import SequenceMatcher

    gone = [entry for entry in entries if entry.text not in texts]
    new = [text for text in texts if text not in old]
    steps: list[MemoryStep] = []
    pairs: dict[int, str] = {}
    for kind, a, b, c, d in SequenceMatcher(None, old, list(texts), False).get_opcodes():
        if kind == "replace" and b - a == d - c:
            pairs |= {
                entries[a + at].id: texts[c + at]
                for at in range(b - a)
                if entries[a + at] in gone and texts[c + at] in new
            }
    for entry in gone:
        if entry.id in pairs:
            steps.append(MemoryStep(action="replace", entry=entry.id, text=pairs[entry.id]))
        else:
            steps.append(MemoryStep(action="remove", entry=entry.id))
    taken = set(pairs.values())
    return steps + [
        MemoryStep(action="add", entry=0, text=text) for text in new if text not in taken
    ]


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerError(f"Memory could not be written ({error}); nothing was changed.") from error

"""Tracks tainted files: written while untrusted text was in view and not changed since."""

from __future__ import annotations

import math
import os
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from hermes.codec.values import replace
from hermes.policy.places.places import is_inside
from hermes.policy.taint.record import Began, Cleared, Ended, Held, Record, TaintEntry

FILE = "suspects.jsonl"
# The clock of file systems is behind by up to a tick.
TICK_NS = 12_000_000
LARGEST = 4 * 1024 * 1024
# The size from which the record is compacted, how many periods stay as they are, and how many of
# the older ones are merged into one.
LONG = 512 * 1024
RECENT = 500
TOGETHER = 8
MOST_NAMES = 300
MOST_DIGESTS = 5_000
MOST_PRINTS = 100
Stamp = tuple[str, int, int]


class TaintRegistry:
    """Tells which files of a home untrusted text may have influenced. A file is tainted if the time
    of its content or its inode lies in a recorded period, or if its content equals that of such a
    file: a copy, or a checkout from git. Editing it later removes the taint; moving it, changing
    its mode or committing it does not. A person can also clear a content in all places."""

    def __init__(
        self,
        path: Path,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        is_alive: Callable[[int], bool] | None = None,
    ) -> None:
        self._record: Record[TaintEntry] = Record(path, TaintEntry)
        self._now_ns = now_ns
        self._is_alive = is_alive or _is_alive
        self._lock = Lock()
        self._began: dict[str, Began] = {}
        self._ended: dict[str, int] = {}
        self._cleared: dict[str, None] = {}
        self._digests: dict[Stamp, str] = {}
        # Cached answers, until the record changes.
        self._sources_by_file: dict[tuple[str, int, int, int, int], tuple[str, ...]] = {}
        self._names_below: dict[tuple[str, ...], tuple[str, ...]] = {}
        # By size and digest: the sources in view when the content was written.
        self._prints: dict[int, dict[str, tuple[str, ...]]] = {}
        self._open: list[str] = []
        self._mine: dict[str, Began] = {}
        # In order: periods, when they begin, and up to when those that began until then last.
        self._ordered: list[Began] = []
        self._starts: list[int] = []
        self._until: list[float] = []
        self._own = 0
        self._short = 0

    # Reading.

    def exist(self) -> bool:
        return self._refresh()

    def sources(self, path: str) -> tuple[str, ...]:
        """Return the untrusted sources in view when the file was written; () for other files."""
        if not self._refresh():
            return ()
        try:
            seen = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            return ()
        stamp = (path, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if stamp not in self._sources_by_file:
            found = self._by_time(path, seen)
            if not found and (prints := self._prints.get(seen.st_size)):
                found = set(prints.get(self._digest(path, seen), ()))
            cleared = found and self._cleared and self._digest(path, seen) in self._cleared
            self._sources_by_file[stamp] = () if cleared else tuple(sorted(found))
        return self._sources_by_file[stamp]

    def _by_time(self, path: str, seen: os.stat_result) -> set[str]:
        times = {seen.st_ctime_ns, seen.st_mtime_ns}
        periods = [each for at in times for each in self._periods(at)]
        if not periods:
            return set()
        real = os.path.realpath(path)
        return {
            source
            for each in periods
            if any(is_inside(real, folder) for folder in (each.root, *each.names))
            for source in each.by
        }

    def names(self, *folders: str) -> tuple[str, ...]:
        """Return files below the folders that may be tainted, newest first, including copies of
        tainted files in another worktree."""
        if not self._refresh():
            return ()
        if folders not in self._names_below:
            self._names_below[folders] = tuple(self._names(folders))[:MOST_NAMES]
        return self._names_below[folders]

    def _names(self, folders: tuple[str, ...]) -> dict[str, None]:
        near: dict[str, None] = {}
        for each in reversed(self._began.values()):
            for name in reversed(each.names):
                for folder in folders:
                    if is_inside(name, folder):
                        near[name] = None
                    elif is_inside(name, each.root):
                        near[folder + name[len(each.root) :]] = None
        return near

    def _refresh(self) -> bool:
        """Read new entries; return whether there are any entries."""
        with self._lock:
            news = self._record.news()
            if news is not None:
                if news[0]:
                    self._began, self._ended, self._cleared, self._prints = {}, {}, {}, {}
                self._take(news[1])
            if not self._began:
                return False
            gone = [
                Ended(id=each, at=self._now_ns())
                for each in self._open
                if not self._is_alive(self._began[each].owner)
            ]
            if gone:
                # It may have written files until now, but not later.
                self._take(gone)
                with suppress(OSError):
                    self._record.add(gone)
            return True

    def _take(self, lines: Iterable[TaintEntry]) -> None:
        self._sources_by_file, self._names_below = {}, {}
        for line in lines:
            match line:
                case Began():
                    self._began[line.id] = line
                case Ended(id=id_, at=at) if id_ in self._began:
                    self._ended.setdefault(id_, at)
                    began = self._began[id_]
                    names = dict.fromkeys((*began.names, *line.names))
                    self._began[id_] = replace(began, names=tuple(names))
                    self._hold(began.by, line.prints)
                case Ended():
                    continue
                case Held(by=by, prints=prints):
                    self._hold(by, prints)
                case Cleared(digest=digest):
                    self._cleared[digest] = None
        self._open = [each for each in self._began if each not in self._ended]
        self._ordered = sorted(self._began.values(), key=lambda each: each.at)
        self._starts, self._until, last = [], [], 0.0
        for each in self._ordered:
            last = max(last, self._ended.get(each.id, math.inf))
            self._starts.append(each.at - TICK_NS)
            self._until.append(last)

    def _hold(self, by: tuple[str, ...], prints: Iterable[tuple[int, str]]) -> None:
        for size, digest in prints:
            self._prints.setdefault(size, {})[digest] = by

    def _periods(self, at: int) -> Iterator[Began]:
        """Yield the periods that contain this moment, newest first."""
        index = bisect_right(self._starts, at) - 1
        while index >= 0 and at <= self._until[index]:
            period = self._ordered[index]
            if at <= self._ended.get(period.id, math.inf):
                yield period
            index -= 1

    def _digest(self, path: str, seen: os.stat_result) -> str:
        stamp = (path, seen.st_ctime_ns, seen.st_size)
        if stamp not in self._digests:
            self._digests[stamp] = _digest(path)
        return self._digests[stamp]

    # Writing. All of it blocks; OSError where the home cannot be written.

    def begin(self, root: str, names: Iterable[str], by: Iterable[str], owner: int = 0) -> str:
        """Record that files may be written from now on while these sources are in view. Pass the
        returned id to `end`. Durable when it returns."""
        owner = owner or os.getpid()
        self._own += 1
        at = self._now_ns()
        began = Began(
            id=f"{os.getpid()}-{at}-{self._own}",
            at=at,
            root=os.path.realpath(root),
            by=tuple(sorted(by)),
            owner=owner,
            names=tuple(os.path.realpath(name) for name in names),
        )
        self._mine[began.id] = began
        self._record.add((began,), safely=True)
        return began.id

    def end(self, id_: str, names: Iterable[str] = ()) -> None:
        """Record the end of a period. `names` are more files that were written meanwhile."""
        began, found = self._mine.pop(id_), tuple(os.path.realpath(name) for name in names)
        prints = (_print(name, began.at) for name in dict.fromkeys((*began.names, *found)))
        written = tuple(each for each in prints if each is not None)[:MOST_PRINTS]
        self._record.add((Ended(id=id_, at=self._now_ns(), names=found, prints=written),))
        self._shorten()

    def clear(self, paths: Iterable[str]) -> None:
        """Trust the current content of these files, wherever it occurs."""
        digests = {digest for path in paths if (digest := _digest(path))}
        self._record.add(Cleared(digest=each) for each in sorted(digests))

    def _shorten(self) -> None:
        """Merge old periods with their neighbours, which taints more files and never fewer."""
        if not self._refresh() or self._record.length < max(LONG, 2 * self._short):
            return
        with self._lock:
            periods = sorted(self._began.values(), key=lambda each: each.at)
            old, recent = periods[:-RECENT], periods[-RECENT:]
            ends, left = dict(self._ended), MOST_NAMES
            lines: list[TaintEntry] = []
            for began in reversed(recent + list(_merge(old, ends))):
                kept = tuple(name for name in began.names if os.path.exists(name))[:left]  # noqa: PTH110
                left -= len(kept)
                lines += (Ended(id=began.id, at=ends[began.id]),) if began.id in ends else ()
                lines.append(replace(began, names=kept))
            lines += (Cleared(digest=each) for each in [*self._cleared][-MOST_DIGESTS:])
            lines += self._held_digests()
            length = self._record.length
            self._short = self._record.rewrite(reversed(lines), while_as_long=length)

    def _held_digests(self) -> list[Held]:
        found: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for size, digests in self._prints.items():
            for digest, by in digests.items():
                found.setdefault(by, []).append((size, digest))
        return [Held(by=by, prints=tuple(prints)) for by, prints in found.items()]


def _merge(periods: list[Began], ends: dict[str, int]) -> Iterable[Began]:
    """Merge up to `TOGETHER` neighbouring periods of one folder; open periods are kept."""
    folders: dict[str, list[Began]] = {}
    for each in periods:
        if each.id in ends:
            folders.setdefault(each.root, []).append(each)
        else:
            yield each
    for same in folders.values():
        for start in range(0, len(same), TOGETHER):
            group = same[start : start + TOGETHER]
            ends[group[0].id] = max(ends[each.id] for each in group)
            yield replace(
                group[0],
                by=tuple(sorted({source for each in group for source in each.by})),
                names=tuple(dict.fromkeys(name for each in group for name in each.names)),
            )


def _is_alive(owner: int) -> bool:
    try:
        os.kill(owner, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _print(path: str, since: int) -> tuple[int, str] | None:
    """Return size and digest of a file that was written since then and is not empty."""
    try:
        seen = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(seen.st_mode) or not seen.st_size or seen.st_ctime_ns < since - TICK_NS:
        return None
    digest = _digest(path)
    return (seen.st_size, digest) if digest else None


def _digest(path: str) -> str:
    """Return the digest of the content; "" for unreadable and very large files."""
    import hashlib

    try:
        # Opening a pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(data).hexdigest() if len(data) <= LARGEST else ""


def open_taint_registry(root: Path) -> TaintRegistry:
    """Return the taint registry of the home in this folder."""
    return TaintRegistry(root / FILE)

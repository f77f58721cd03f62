"""Which files are suspects: written while strangers' words were in view, and not changed since."""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from hermes.codec.values import replace
from hermes.policy.suspects.record import Began, Cleared, Ended, Line, Record

FILE = "suspects.jsonl"
# File systems note times by a clock that is behind by up to a tick.
TICK_NS = 12_000_000
LARGEST = 4 * 1024 * 1024
# From how many bytes on the record is told in fewer lines; how many periods stay as they are, and
# how many of the older ones become one.
LONG = 512 * 1024
RECENT = 500
TOGETHER = 8
MOST_NAMES = 400
MOST_DIGESTS = 5_000
Stamp = tuple[str, int, int]


class Suspects:
    """For one home. A file is a suspect when the time of its content or of its inode lies within
    a period in which strangers could have had it written. Nobody can set both back: whoever edits
    it afterwards, or puts another in its place, makes it theirs; moving it or changing its mode
    does not. A person can also clear its content, wherever it lies then."""

    def __init__(
        self,
        path: Path,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        is_alive: Callable[[int], bool] | None = None,
    ) -> None:
        self._record = Record(path)
        self._now_ns = now_ns
        self._is_alive = is_alive or _is_alive
        self._lock = Lock()
        self._began: dict[str, Began] = {}
        self._ended: dict[str, int] = {}
        self._cleared: dict[str, None] = {}
        self._digests: dict[Stamp, str] = {}
        # Times at which a period begins, and up to which those that began until then last.
        self._starts: list[int] = []
        self._until: list[float] = []
        self._own = 0
        self._short = 0

    # What is known.

    def exist(self) -> bool:
        return self._known()

    def sources(self, path: str) -> tuple[str, ...]:
        """Whose words were in view when the file was written; () for files that are no suspects."""
        if not self._known():
            return ()
        try:
            seen = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            return ()
        times = (seen.st_ctime_ns, seen.st_mtime_ns)
        if not any(map(self._is_within, times)):
            return ()
        real = os.path.realpath(path)
        found = {
            source
            for each in self._began.values()
            if _covers(each, real) and any(self._lasts(each, at) for at in times)
            for source in each.by
        }
        if not found or self._is_cleared(real, seen):
            return ()
        return tuple(sorted(found))

    def names(self, *folders: str) -> tuple[str, ...]:
        """Files below the folders that are suspects by name, newest first."""
        if not self._known():
            return ()
        named = dict.fromkeys(
            name for each in reversed(self._began.values()) for name in reversed(each.names)
        )
        near = [name for name in named if any(_inside(name, each) for each in folders)]
        return tuple(name for name in near[:MOST_NAMES] if self.sources(name))

    def _known(self) -> bool:
        """Looks whether there is something new. False in a home without any."""
        with self._lock:
            news = self._record.news()
            if news is not None:
                if news[0]:
                    self._began, self._ended, self._cleared = {}, {}, {}
                self._take(news[1])
            if not self._began:
                return False
            gone = [
                Ended(id=each.id, at=self._now_ns())
                for each in self._began.values()
                if each.id not in self._ended and not self._is_alive(each.owner)
            ]
            if gone:
                # Whatever was written until now may be its doing; what comes now is not.
                self._take(gone)
                with suppress(OSError):
                    self._record.add(gone)
            return True

    def _take(self, lines: Iterable[Line]) -> None:
        for line in lines:
            match line:
                case Began():
                    self._began[line.id] = line
                case Ended(id=id_, at=at, names=names) if id_ in self._began:
                    self._ended.setdefault(id_, at)
                    began = self._began[id_]
                    self._began[id_] = replace(began, names=(*began.names, *names))
                case Ended():
                    continue
                case Cleared(digest=digest):
                    self._cleared[digest] = None
        ordered = sorted(self._began.values(), key=lambda each: each.at)
        self._starts, self._until, last = [], [], 0.0
        for each in ordered:
            last = max(last, self._ended.get(each.id, math.inf))
            self._starts.append(each.at - TICK_NS)
            self._until.append(last)

    def _is_within(self, at: int) -> bool:
        place = bisect_right(self._starts, at)
        return place > 0 and at <= self._until[place - 1]

    def _lasts(self, period: Began, at: int) -> bool:
        return period.at - TICK_NS <= at <= self._ended.get(period.id, math.inf)

    def _is_cleared(self, path: str, seen: os.stat_result) -> bool:
        if not self._cleared:
            return False
        stamp = (path, seen.st_ctime_ns, seen.st_size)
        if stamp not in self._digests:
            self._digests[stamp] = _digest(path)
        return self._digests[stamp] in self._cleared

    # What is written down. All of it blocks; OSError where the home cannot be written.

    def begin(self, root: str, names: Iterable[str], by: Iterable[str], owner: int = 0) -> str:
        """From now on files may be written with these sources in view; for how long is told by
        `end` with what this returns. Durable when it returns."""
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
        self._record.add((began,), safely=True)
        return began.id

    def end(self, id_: str, names: Iterable[str] = ()) -> None:
        self._record.add((Ended(id=id_, at=self._now_ns(), names=tuple(names)),))
        self._shorten()

    def clear(self, paths: Iterable[str]) -> None:
        """A person has taken these files, as they are now, for their own."""
        digests = {digest for path in paths if (digest := _digest(path))}
        self._record.add(Cleared(digest=each) for each in sorted(digests))

    def _shorten(self) -> None:
        """Neighbours among the old periods become one, which says more than is known and never
        less."""
        if not self._known() or self._record.length < max(LONG, 2 * self._short):
            return
        with self._lock:
            periods = sorted(self._began.values(), key=lambda each: each.at)
            old, recent = periods[:-RECENT], periods[-RECENT:]
            ends, left = self._ended, MOST_NAMES
            lines: list[Line] = []
            for began in reversed(recent + list(_joined(old, ends))):
                kept = tuple(name for name in began.names if os.path.exists(name))[:left]  # noqa: PTH110
                left -= len(kept)
                lines += (Ended(id=began.id, at=ends[began.id]),) if began.id in ends else ()
                lines.append(replace(began, names=kept))
            cleared = [Cleared(digest=each) for each in [*self._cleared][-MOST_DIGESTS:]]
            length = self._record.length
            self._short = self._record.rewrite((*cleared, *reversed(lines)), while_as_long=length)


def _joined(periods: list[Began], ends: dict[str, int]) -> Iterable[Began]:
    """Up to `TOGETHER` neighbours of the same folder as one, and what has not ended as it is."""
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


def _covers(period: Began, path: str) -> bool:
    return _inside(path, period.root) or any(_inside(path, name) for name in period.names)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_alive(owner: int) -> bool:
    try:
        os.kill(owner, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _digest(path: str) -> str:
    """Of the content; "" for what cannot be read or is too large to be somebody's text."""
    import hashlib

    try:
        # A pipe must not keep us waiting for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(data).hexdigest() if len(data) <= LARGEST else ""

"""Files of another machine that were written in sight of strangers, and what they held: nothing
over there can be looked at while a decision is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

from hermes.codec.values import Value
from hermes.policy.suspects.record import Record

FILE = "suspects_elsewhere.jsonl"
LARGEST = 64 * 1024
LONG = 2 * 1024 * 1024
MOST_FILES = 300


class Copied(Value, tag="copied"):
    """`text` is None where nobody has looked yet, and for what is no text."""

    place: str
    path: str
    by: tuple[str, ...]
    text: str | None = None


class Dropped(Value, tag="dropped"):
    """The file is gone, or holds something else that no stranger wanted."""

    place: str
    path: str


Line = Copied | Dropped


class Copies:
    """For one place, which has a name of its own in the record of the home. It has the same to say
    as `Suspects` about files of this machine."""

    def __init__(self, path: Path, place: str) -> None:
        self._record: Record[Line] = Record(path, Line)
        self._place = place
        self._lock = Lock()
        self._files: dict[tuple[str, str], Copied] = {}

    def exist(self) -> bool:
        return any(place == self._place for place, _ in self._known())

    def sources(self, path: str) -> tuple[str, ...]:
        found = self._known().get((self._place, path))
        return found.by if found else ()

    def names(self, *folders: str) -> tuple[str, ...]:
        inside = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        here = (path for place, path in reversed(self._known()) if place == self._place)
        return tuple(path for path in here if path.startswith(inside))

    def text(self, path: str) -> str | None:
        found = self._known().get((self._place, path))
        return found.text if found else None

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        text = self.text(path)
        return None if text is None else (path, hash(text), len(text))

    def clear(self, paths: Iterable[str]) -> None:
        """A person takes them for their own, as they are now."""
        self.drop(paths)

    # What is written down. All of it blocks; OSError where the home cannot be written.

    def keep(self, texts: Mapping[str, str | None], by: Iterable[str]) -> None:
        """Durable when it returns."""
        sources = tuple(sorted(by))
        self._add(
            Copied(place=self._place, path=path, by=sources, text=text)
            for path, text in texts.items()
        )

    def drop(self, paths: Iterable[str]) -> None:
        known = self._known()
        self._add(
            Dropped(place=self._place, path=path) for path in paths if (self._place, path) in known
        )

    def _add(self, lines: Iterable[Line]) -> None:
        if told := tuple(lines):
            self._record.add(told, safely=True)
            self._shorten()

    def _known(self) -> dict[tuple[str, str], Copied]:
        with self._lock:
            news = self._record.news()
            if news is not None:
                if news[0]:
                    self._files = {}
                for line in news[1]:
                    # What is newest comes last.
                    self._files.pop((line.place, line.path), None)
                    if isinstance(line, Copied):
                        self._files[line.place, line.path] = line
            return self._files

    def _shorten(self) -> None:
        known = self._known()
        if self._record.length > LONG:
            newest = list(known.values())[-MOST_FILES:]
            self._record.rewrite(newest, while_as_long=self._record.length)

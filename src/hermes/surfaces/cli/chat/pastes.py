"""Long pastes and images, shown in the input as placeholders and sent in full."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from urllib.parse import unquote

from hermes.config.home import Home
from hermes.core.errors import ConfigError

# Pastes up to this many lines are shown in full.
SHOWN_LINES = 5
KEPT_SECONDS = 7 * 24 * 3600
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LONGEST_PATH = 4096

_NAME = re.compile(r"\[Pasted text #(\d+): \d+ lines\]")
_PICTURE = re.compile(r"\[Image #(\d+): [^\]]*\]")


class Pastes:
    """The contents of placeholders. With a `home`, `keep` saves a copy of pasted text, so that it
    survives a lost terminal."""

    def __init__(self, home: Home | None = None) -> None:
        self._home = home
        self._texts: list[str] = []
        self._pictures: list[str] = []

    def placeholder(self, text: str) -> str:
        """The placeholder of a pasted text, or the text itself if it is short."""
        plain = _sound(text.replace("\r\n", "\n").replace("\r", "\n"))
        if picture := _dropped_picture(plain):
            return self.picture(picture)
        lines = plain.rstrip("\n").count("\n") + 1
        if lines <= SHOWN_LINES:
            return plain
        self._texts.append(plain)
        return f"[Pasted text #{len(self._texts)}: {lines} lines]"

    def picture(self, path: str) -> str:
        """The placeholder of an image."""
        self._pictures.append(path)
        name = Path(path).name.replace("]", ")")
        return f"[Image #{len(self._pictures)}: {name}]"

    def expand(self, text: str) -> str:
        """The input with its placeholders replaced."""
        return _NAME.sub(self._text, text)

    def pictures(self, text: str) -> tuple[str, ...]:
        """The files of the images in a text."""
        numbers = dict.fromkeys(int(found[1]) for found in _PICTURE.finditer(text))
        return tuple(self._pictures[n - 1] for n in numbers if 1 <= n <= len(self._pictures))

    def keep(self, text: str) -> None:
        """Save a copy for a week, readable by its owner only, with secrets masked."""
        if self._home is None or not _NAME.search(text):
            return
        # Loaded at the first paste, for a fast start.
        from hermes.credentials.redaction import line_redactor

        try:
            folder = self._home.ensure_folder(self._home.root / "pastes")
            _sweep(folder)
            body = line_redactor(self._home)(self.expand(text))
            path = folder / time.strftime("paste_%Y%m%d_%H%M%S.txt")
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as copy:
                copy.write(body)
        except (OSError, ConfigError):
            # The copy is optional; the paste itself is in the input.
            return

    def _text(self, name: re.Match[str]) -> str:
        number = int(name[1])
        return self._texts[number - 1] if 1 <= number <= len(self._texts) else name[0]


def _sound(text: str) -> str:
    """Without lone surrogates, which cannot be encoded."""
    return re.sub(r"[\ud800-\udfff]", "", text)


def _dropped_picture(text: str) -> str:
    """The path, if the text is only the path of an image, as terminals write dropped files."""
    line = text.strip()
    if not line.lower().rstrip("'\"").endswith(PICTURES) or len(line) > LONGEST_PATH:
        return ""
    if line.startswith("file://"):
        line = unquote(line.removeprefix("file://"))
    elif line[:1] == line[-1:] and line[:1] in ("'", '"'):
        line = line[1:-1]
    else:
        line = re.sub(r"\\(.)", r"\1", line)
    path = Path(line).expanduser()
    try:
        return str(path) if "\n" not in line and path.is_absolute() and path.is_file() else ""
    except OSError:
        return ""


def _sweep(folder: Path) -> None:
    old = time.time() - KEPT_SECONDS
    for each in folder.glob("paste_*.txt"):
        if each.stat().st_mtime < old:
            each.unlink()

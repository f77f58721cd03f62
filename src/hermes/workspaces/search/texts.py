"""Text files are those without a NUL byte."""

from __future__ import annotations

from pathlib import Path

CHUNK_BYTES = 1 << 20


def is_text(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                if b"\0" in chunk:
                    return False
    except OSError:
        return False
    return True


def filter_texts(paths: list[str]) -> list[str]:
    return [path for path in paths if is_text(path)]

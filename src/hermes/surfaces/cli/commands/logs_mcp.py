"""`hermes logs mcp`: the stderr of MCP servers, one file per server."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from hermes.codec.json import encode
from hermes.commands.visible import sanitize
from hermes.config.home import Home
from hermes.credentials.redaction import line_redactor
from hermes.surfaces.cli.commands.logs_tail import FOLLOW_SECONDS, Tail, rotated_files


def show_mcp(home: Home, *, lines: int, follow: bool, as_json: bool) -> bool:
    """Print the newest lines of each server. Returns whether any server has a log."""
    files = sorted((home.logs / "mcp").glob("*.log"))
    # Server output is untrusted: it may contain secrets or terminal control sequences.
    # Redaction is slow to load.

    mask = line_redactor(home)
    with ExitStack() as stack:
        tails = {file: stack.enter_context(closing(Tail(file))) for file in files}
        for file in files:
            for line in _newest_lines(file, lines):
                _print_mcp(file.stem, line, mask, as_json)
        while follow and files:
            new = [(file.stem, line) for file, tail in tails.items() for line in tail.new_lines()]
            for server, line in new:
                _print_mcp(server, line.rstrip("\n"), mask, as_json)
            if not new:
                time.sleep(FOLLOW_SECONDS)
    return bool(files)


def _newest_lines(file: Path, count: int) -> list[str]:
    kept: deque[str] = deque(maxlen=count)
    for part in reversed([*rotated_files(file)]):
        with part.open(encoding="utf-8", errors="replace") as stream:
            kept.extend(line.rstrip("\n") for line in stream)
    return list(kept)


def _print_mcp(server: str, line: str, mask: Callable[[str], str], as_json: bool) -> None:
    text = sanitize(mask(line))
    shown = encode({"server": server, "text": text}).decode() if as_json else f"[{server}] {text}"
    print(shown, flush=True)

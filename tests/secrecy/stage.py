"""A home full of secrets, a model that asks for them, and everything that was written or sent."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

from hermes.surfaces.cli.running import run
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step
from tests.secrecy.canaries import CANARIES, CONFIGURED, Canary, found, told

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("hermes"))
KEY = CONFIGURED[0].value
SECONDS = 240
# Where secrets are kept on purpose, what a background process writes by itself, and the copies of
# the person's own files that undo puts back byte by byte.
KEPT = (".env", "config.yaml", "auth.json", "processes", "checkpoints")


class Stage:
    """Five values are in the process, ten in .env, three in config.yaml, two in auth.json."""

    def __init__(self, root: Path, canaries: tuple[Canary, ...] = CANARIES) -> None:
        self.home, self.work = root / "home", root / "work"
        self.work.mkdir(parents=True)
        self.home.mkdir(mode=0o700)
        self.canaries = canaries
        self.seen: list[bytes] = []
        variables = (f"{each.name}='{each.value}'" for each in CONFIGURED[5:15])
        self.home.joinpath(".env").write_text("\n".join(variables))
        keys = "\n".join(
            f"  own{n}: {{base_url: 'http://127.0.0.1:9/v1', api_key: '{each.value}'}}"
            for n, each in enumerate(CONFIGURED[15:18])
        )
        settings = f"sessions: {{record: true}}\nproviders:\n{keys}\n"
        self.home.joinpath("config.yaml").write_text(settings)
        self.work.joinpath("notes.txt").write_text(told(canaries))
        entries = [
            {"id": each.name, "label": each.name, "access_token": each.value, "added_at": 1.0}
            for each in CONFIGURED[18:]
        ]
        accounts = {"version": 1, "credential_pool": {"openrouter": entries}}
        self.home.joinpath("auth.json").write_text(json.dumps(accounts))

    def env(self, server: ScriptedServer | None = None) -> dict[str, str]:
        process = {each.name: each.value for each in CONFIGURED[1:5]}
        url = f"{server.url}/v1" if server else "http://127.0.0.1:9/v1"
        return {
            **process,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "HOME": str(self.work.parent),
            "HERMES_HOME": str(self.home),
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": KEY,
        }

    def run(
        self,
        *words: str,
        server: ScriptedServer | None = None,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """The program in a process of its own; what it prints counts as seen."""
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=self.work,
            env={**self.env(server), **(more or {})},
            capture_output=True,
            timeout=SECONDS,
        )
        self.seen += [done.stdout, done.stderr]
        return done

    def look(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """The same in this process, which is quicker, for what asks no model."""
        printed = io.BytesIO(), io.BytesIO()
        out, err = (
            io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in printed
        )
        with (
            patch.dict(os.environ, self.env(), clear=True),
            contextlib.chdir(self.work),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(list(words))
        self.seen += [each.getvalue() for each in printed]
        return subprocess.CompletedProcess(words, code, *self.seen[-2:])

    def talk(
        self,
        steps: Iterable[Step] | Rule[Request],
        *words: str,
        say: str = "Look at the notes.",
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """One turn with a model that does these things; its requests count as seen."""
        with ScriptedServer.in_thread(steps, strict=False) as server:
            options = ("-m", "test", "--provider", "custom", "--yolo")
            done = self.run(*options, "-z", say, "--json", *words, server=server, more=more)
            self.see_requests(server, say)
        return done

    def see_requests(self, server: ScriptedServer, *typed: str) -> None:
        """Requests count as seen, except for what the person typed."""
        for request in server.requests:
            raw = request.raw
            for text in typed:
                for form in (json.dumps(text, ensure_ascii=False), json.dumps(text)):
                    raw = raw.replace(form[1:-1].encode(), b"(typed)")
            self.seen.append(raw)

    def leaks(self) -> dict[str, list[str]]:
        """Where which canaries are: in what was seen, and in every file of the home."""
        places = {f"seen {n}": data for n, data in enumerate(self.seen)}
        places |= {str(path.relative_to(self.home)): data for path, data in self._files()}
        self.look("sessions", "export", "-", "--no-redact")
        places["journal"] = self.seen[-2]
        listed = {place: found(data, self.canaries) for place, data in places.items()}
        return {place: names for place, names in listed.items() if names}

    def _files(self) -> Iterator[tuple[Path, bytes]]:
        for path in self.home.rglob("*"):
            if path.is_file() and not any(part in KEPT for part in path.parts):
                yield path, _unpacked(path)
        store = self.home / "checkpoints" / "store.db"
        if store.exists():
            yield store, _remembered(store)


def _remembered(store: Path) -> bytes:
    """What undo tells of the calls, besides the files that it keeps for them."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        return repr(db.execute("SELECT * FROM calls").fetchall()).encode()


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".tape":
        return zlib.decompressobj().decompress(data)
    return gzip.decompress(data) if path.suffix == ".gz" else data

"""The home, the model and the checks of one cell of the fault matrix."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from hermes.core.events import MessageReceived
from hermes.core.transcript import fold
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.durability.mounts import mounted
from tests.durability.stage import PROGRAM, Stage

INSIDE = Path(__file__).with_name("inside")
# Nothing may take longer.
CELL_SECONDS = 60.0
Rule = Callable[[Request], Step | Awaitable[Step]]
UNTITLED = "auxiliary: {title_generation: {provider: none}}\n"
APPROVED = "approvals: {mode: 'off', noninteractive_mode: approve}\n"


class Outcome(NamedTuple):
    """What became of a message: the answer, or what the person was told instead."""

    answer: str
    error: str = ""

    def describe(self) -> str:
        return "held" if self.answer else " / ".join(self.error.split("\n"))[:160]


class Ground:
    """A home, a model that quotes the last message, and what was said. `rules` replace the model's
    answer to a message; each is used while it is there."""

    def __init__(self, root: Path, disk: Path, server: ScriptedServer) -> None:
        self.root = root
        self.disk = disk
        self.home = disk / "home"
        self.server = server
        self.rules: dict[str, Rule] = {}
        self.prefix: tuple[str, ...] = ()
        self.settings = APPROVED
        self.work = root / "work"
        self.work.mkdir()
        self._control = root / "control.json"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PYTHONPATH": f"{INSIDE}:{Path(__file__).parents[2]}",
            "HERMES_MATRIX_CONTROL": str(self._control),
            "HERMES_HOME": str(self.home),
            "HOME": str(self.root),
            "HERMES_TESTING": "1",
        }

    def configure(self) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        model = f'model: {{default: m, provider: custom, base_url: "{self.server.url}/v1"}}\n'
        (self.home / "config.yaml").write_text(model + UNTITLED + self.settings)
        (self.home / "config.yaml").chmod(0o600)
        (self.home / ".no-bundled-skills").touch()

    def control(self, **settings: float) -> None:
        self._control.write_text(json.dumps(settings))

    def answer(self, request: Request) -> Step | Awaitable[Step]:
        users = [m.text for m in request.messages if m.role == "user" and m.text.strip()]
        said = users[-1].strip().splitlines()[-1] if users else ""
        if (rule := self.rules.get(said)) is not None:
            return rule(request)
        return says(f"You said: {said}")

    async def hermes(self, *words: str) -> tuple[int, str]:
        """Exit code and output of a command in this home."""
        process = await asyncio.create_subprocess_exec(
            *self.prefix,
            PROGRAM,
            *words,
            cwd=self.work,
            env={**os.environ, **self.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(CELL_SECONDS):
            out, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode()

    async def check(
        self, said: dict[str, Outcome], *, lossy: bool = False, damaged: bool = False
    ) -> None:
        """Every answered message is in the journal once, and every other one at most once. With
        `lossy`, the fault took records away; with `damaged`, `verify` may say so."""
        code, out = await self.hermes("sessions", "verify")
        assert (code == 0 or damaged) and "Traceback" not in out, out
        counts: Counter[str] = Counter()
        stage = Stage(self.root / f"reader{len(list(self.root.iterdir()))}", self.server)
        stage.home = self.home
        async with stage.app() as app:
            for info in await app.archive.recent():
                records = await app.archive.records(info.id)
                if not lossy:
                    assert fold(records).unanswered == ()
                received = [r.event for r in records if isinstance(r.event, MessageReceived)]
                counts.update(each.message.text.strip().splitlines()[-1] for each in received)
        for text, outcome in said.items():
            assert counts[text] <= 1, f"{text!r} is there {counts[text]} times"
            if outcome.answer and not lossy:
                assert counts[text] == 1, f"{text!r} was answered and is lost"


@asynccontextmanager
async def ground(root: Path, *, size: str = "") -> AsyncIterator[Ground]:
    """A ground; with `size`, its home is on a disk of its own of that size."""
    held: list[Ground] = []
    async with ScriptedServer(lambda request: held[0].answer(request), strict=False) as server:
        if not size:
            disk = root / "disk"
            disk.mkdir()
            held.append(Ground(root, disk, server))
            yield held[0]
            return
        with mounted(root / "disk", f"size={size}") as disk:
            held.append(Ground(root, disk, server))
            yield held[0]

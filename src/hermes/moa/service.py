"""The mixture of agents of one session: cost estimate, answer and trace file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from hermes.codec.json import encode, plain
from hermes.config.run_context import RunContext
from hermes.core.session import Session
from hermes.moa.mixture import Mixture, MixtureResult
from hermes.moa.presets import find_preset, inspect_preset
from hermes.models.models import Models

TRACES = "moa-traces"


class SessionMixture:
    """Answers questions of one session. The first question shows what such questions cost."""

    def __init__(self, run: RunContext, models: Models, session: Callable[[], Session]) -> None:
        self._run = run
        self._models = models
        self._session = session
        self._is_estimated = False

    async def answer(
        self, question: str, preset_name: str = "", report: Callable[[str], None] | None = None
    ) -> MixtureResult:
        """Raise NotFound for an unknown preset, or ProviderError if there is no answer."""
        session = self._session()
        name, preset = find_preset(self._run.settings.moa, preset_name)
        if not self._is_estimated:
            self._is_estimated = True
            session.tell(self._estimate(name))
        clock = self._run.world.clock
        mixture = Mixture(self._models, preset, session.meter, clock, report or session.tell)
        result = await mixture.answer(question)
        if self._run.settings.moa.save_traces:
            await asyncio.to_thread(self._save_trace, session.id, question, result)
        return result

    def _estimate(self, name: str) -> str:
        _, preset = find_preset(self._run.settings.moa, name)
        status = inspect_preset(self._models, name, preset)
        count = len(status.references)
        cost = "an unknown amount" if status.cost is None else f"about ${status.cost:.3f}"
        return f"Asking {count} models and an aggregator; a typical question costs {cost}."

    def _save_trace(self, session_id: str, question: str, result: MixtureResult) -> None:
        """Append one line. Secrets are removed, as in the journal."""
        folder = self._run.home.root / TRACES
        folder.mkdir(mode=0o700, exist_ok=True)
        redact = self._run.redactor.text
        line = {
            "at": self._run.world.clock.now(),
            "question": redact(question),
            "references": [
                {**plain(each), "text": redact(each.text)} for each in result.references
            ],
            "aggregator": {**plain(result.aggregator), "text": redact(result.text)},
            "seconds": round(result.seconds, 3),
        }
        _append_line(folder / f"{session_id}.jsonl", encode(line))


def _append_line(path: Path, line: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line + b"\n")
    finally:
        os.close(file)

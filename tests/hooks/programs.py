"""Programs that are hooks, for whole sessions: each notes that it ran and says one thing."""

from __future__ import annotations

import json
from pathlib import Path

CHANGING: dict[str, object] = {
    "pre_llm_call": {"context": "It is Friday."},
    "pre_tool_call": {"action": "modify", "args": {"command": "echo x >> effects; echo mended"}},
    "transform_terminal_output": {"text": "heard"},
    "transform_tool_result": {"text": "a result from a hook"},
    "transform_llm_output": {"text": "An answer from a hook."},
}


class Programs:
    """In a folder of their own."""

    def __init__(self, folder: Path, said: dict[str, object] | None = None) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._said = CHANGING if said is None else said
        for event, words in self._said.items():
            program = folder / event
            note = f"cat > /dev/null; echo {event} >> {folder}/ran"
            program.write_text(f"#!/bin/sh\n{note}\ncat <<'END'\n{json.dumps(words)}\nEND\n")
            program.chmod(0o755)

    @property
    def settings(self) -> str:
        hooks = {event: [{"command": str(self._folder / event)}] for event in self._said}
        return f"hooks: {json.dumps(hooks)}\nhooks_auto_accept: true\n"

    @property
    def ran(self) -> list[str]:
        file = self._folder / "ran"
        return file.read_text().split() if file.exists() else []

    def remove(self) -> None:
        for event in self._said:
            (self._folder / event).unlink()

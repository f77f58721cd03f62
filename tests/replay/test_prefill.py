"""The messages that requests began with belong to the record."""

from __future__ import annotations

from pathlib import Path

from hermes.app.replay import replay
from hermes.testing.steps import says
from tests.replay.recorded import record


async def test_the_first_messages_of_then_are_played_though_their_file_is_gone(
    tmp_path: Path,
) -> None:
    first = tmp_path / "first.json"
    first.write_text('[{"role": "user", "content": "Ping?"}]')
    recording = await record(tmp_path, says("Hello."), settings=f"prefill_messages_file: {first}\n")
    first.unlink()
    assert (await replay(recording)).divergence is None
    for tape in recording.tapes:
        assert b"Ping?" in tape.exchanges[0].body

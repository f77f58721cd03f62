"""Neither a tape nor a file that is given away holds a secret, wherever it came from."""

from __future__ import annotations

import zlib
from pathlib import Path

from hermes.app.replay import replay
from hermes.core.commands import Say
from hermes.core.session_request import SessionRequest
from hermes.replay.collection import collect_recording
from hermes.replay.recording import lines_of, load, pack_recording
from hermes.testing.faults import paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.replay.story_players import Home

IN_ENV = [f"canary-of-the-environment-{n:02}-{n * 7919:x}zq" for n in range(16)]
IN_FILE = [f'canary "quoted" of .env {n:02} \\ {n * 104729:x}é' for n in range(16)]
IN_SETTINGS = ["canary-of-a-provider-11aa22", "canary-of-a-header-33bb44"]
CANARIES = [*IN_ENV, *IN_FILE, *IN_SETTINGS, "canary-of-the-asked-key-55cc66"]

SETTINGS = f"""
providers:
  other:
    base_url: "http://127.0.0.1:9/v1"
    api_key: {IN_SETTINGS[0]}
    extra_headers: {{x-api-token: {IN_SETTINGS[1]}}}
"""


class Careless(Home):
    """Secrets everywhere, and a model that repeats what it reads."""

    def __init__(self, root: Path, server: ScriptedServer) -> None:
        super().__init__(root, server)
        config = self.home / "config.yaml"
        config.write_text(f"sessions: {{record: true}}\n{SETTINGS}")
        lines = (f"FILE_{n}_API_KEY='{value}'" for n, value in enumerate(IN_FILE))
        self.home.joinpath(".env").write_text("\n".join(lines))
        self.work.joinpath("leak.txt").write_text("\n".join(CANARIES))

    @property
    def env(self) -> dict[str, str]:
        held = {f"CANARY_{n}_TOKEN": value for n, value in enumerate(IN_ENV)}
        return super().env | held | {"OPENAI_API_KEY": CANARIES[-1]}


async def test_no_canary_survives_in_tapes_and_exports_and_they_are_still_played(
    tmp_path: Path,
) -> None:
    echo = " ".join(CANARIES)
    steps = [
        calls("read_file", path="leak.txt"),
        calls("terminal", command=f"echo '{IN_ENV[0]}'"),
        paced(says(f"I have read {echo}"), chunk=5),
        paced(says(echo), chunk=3),
    ]
    async with ScriptedServer(steps, strict=False) as server:
        stage = Careless(tmp_path, server)
        async with stage.app() as app:
            session = await app.open(
                SessionRequest(source="cli", attended=False, cwd=str(stage.work))
            )
            for words in (f"My key is {IN_ENV[1]}.", f"Say {IN_FILE[1]} again."):
                await session.send(Say(text=words))
                await session.wait_until_idle()
            recording = await collect_recording(app.context, app.journal, session.id)
        assert CANARIES[-1] in server.requests[0].headers["authorization"]

    (tape,) = stage.home.joinpath("sessions", recording.session_id, "tapes").iterdir()
    taped = zlib.decompressobj().decompress(tape.read_bytes())
    shared = b"".join(lines_of(recording))
    for kept in (taped, shared):
        assert _found(kept) == []
    assert recording.masked >= len(CANARIES)

    file = tmp_path / "shared.gz"
    file.write_bytes(pack_recording(recording))
    report = await replay(load(file))
    assert report.divergence is None
    assert (report.played, report.requests) == (len(recording.lines), 4)
    assert (report.hashes, len(report.words)) == ("same", 1)


def _found(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    plain = text.replace('\\"', '"').replace("\\\\", "\\").replace('\\"', '"').replace("\\\\", "\\")
    return [canary for canary in CANARIES if canary in text or canary in plain]


async def test_a_secret_that_was_set_later_is_taken_out_of_what_was_taped_before(
    tmp_path: Path,
) -> None:
    word = "correct-horse-battery"
    steps = [paced(says(f"You said {word}."), chunk=4)]
    async with ScriptedServer(steps, strict=False) as server:
        stage = Home(tmp_path, server)
        async with stage.app() as app:
            session = await app.open(
                SessionRequest(source="cli", attended=False, cwd=str(stage.work))
            )
            await session.send(Say(text=f"The word is {word}."))
            await session.wait_until_idle()
    stage.home.joinpath(".env").write_text(f"LATER_PASSWORD={word}\n")
    async with stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session.id)
    assert word.encode() not in b"".join(lines_of(recording))
    assert (await replay(recording)).divergence is None

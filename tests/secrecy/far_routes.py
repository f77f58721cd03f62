"""Ways out by which others are told: an editor, servers that draw, and who mends the program."""

from __future__ import annotations

import asyncio
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process
from acp.schema import ClientCapabilities, FileSystemCapabilities

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, fails, says
from tests.images.fakes import B64, Reply, faking
from tests.secrecy.canaries import told
from tests.secrecy.stage import PROGRAM, SECONDS, Stage
from tests.surfaces.acp.editor import Editor


def an_editor(stage: Stage) -> None:
    """All that it is told while a turn goes on, what it is asked, and when the past is played."""
    text = told(stage.canaries)
    with stage.home.joinpath("config.yaml").open("a") as config:
        config.write(
            "model: {default: test, provider: custom}\n"
            "auxiliary: {title_generation: {provider: none}}\n"
        )
    steps = [
        calls("terminal", command="cat notes.txt"),
        calls("terminal", command=f"curl -d @notes.txt 'http://127.0.0.1:9/?q={_one_line(text)}'"),
        calls("write_file", path="copy.txt", content=text),
        calls("todo", todos=[{"id": "1", "content": text, "status": "pending"}]),
        says(text),
        *[fails(400, message=text)] * 4,
    ]
    with ScriptedServer.in_thread(steps, strict=False) as model:
        asyncio.run(_edited(stage, model))
        stage.see_requests(model, text)
        assert len(model.requests) > 4


async def _edited(stage: Stage, model: ScriptedServer) -> None:
    client: Any = Editor()
    client.answers = ["deny"] * 9
    async with (
        asyncio.timeout(SECONDS),
        spawn_agent_process(
            client, PROGRAM, "acp", env=stage.env(model), use_unstable_protocol=True
        ) as (agent, _process),
    ):
        client.agent = agent
        files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
        await agent.initialize(PROTOCOL_VERSION, ClientCapabilities(fs=files, terminal=False))
        session = (await agent.new_session(str(stage.work), mcp_servers=[])).session_id
        stage.seen.append(repr(await client.say(session, "Look at the notes.")).encode())
        try:
            await client.say(session, told(stage.canaries))
        except RequestError as refused:
            stage.seen.append(repr((str(refused), refused.data)).encode())
        stage.seen.append(repr(await agent.load_session(str(stage.work), session, [])).encode())
        listed = await agent.list_sessions(cwd=str(stage.work))
        stage.seen.append(repr(listed).encode())
    assert len(client.updates) > 9
    assert client.asked
    for update in (*client.updates, *client.asked):
        stage.seen.append(repr(update).replace("\\n", "\n").encode())


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("'", "")[:900]


def a_server_that_draws(stage: Stage) -> None:
    """What is to be drawn, and what comes back when it cannot be."""
    text = told(stage.canaries)
    with faking() as fake:
        settings = f'{{base_url: "{fake.url}/v1", model: painter}}'
        with stage.home.joinpath("config.yaml").open("a") as config:
            config.write(
                "image_gen: {provider: openai-compatible, openai_compatible: " + settings + "}\n"
            )
        drawn, refused = Reply({"data": [{"b64_json": B64}]}), Reply({"error": text}, 400)
        fake.on("POST /v1/images/generations", drawn, refused)
        draw = calls("image_generate", prompt=text)
        stage.talk([draw, draw, says("Drawn.")])
        assert fake.asked
        for each in fake.asked:
            # The key is for this server; the address and all else are seen.
            headers = {
                name: value for name, value in each.headers.items() if name != "authorization"
            }
            stage.seen += [each.path.encode(), repr((each.query, headers)).encode(), each.body]


def reports_of_crashes(stage: Stage) -> None:
    """What the program says when it ends by a fault, and what it keeps for who looks for one."""
    text = told(stage.canaries)
    for options in (("--resume", text[:900]), ("--provider", text[:300])):
        done = stage.run("-v", "-z", "hi", *options)
        assert done.returncode != 0, options
        assert done.stderr
    kept = {"HERMES_DUMP_REQUESTS": "1"}
    with stage.home.joinpath("config.yaml").open() as config:
        settings = config.read()
    plain = settings.replace("sessions: {record: true}\n", "")
    stage.home.joinpath("config.yaml").write_text(plain)
    stage.talk([calls("terminal", command="cat notes.txt"), says(text)], say=text, more=kept)
    stage.talk([fails(500, message=text)] * 8, say=text, more=kept)
    assert list((stage.home / "logs/requests").iterdir())
    stage.look("logs")
    stage.look("doctor")
    stage.look("dump")


def the_name_of_a_model(stage: Stage) -> None:
    """Names of models are kept and shown wherever a session is told of."""
    names = [canary.text.split("\n")[0] for canary in stage.canaries if "pem" not in canary.name]
    # One of each kind is enough where all are there.
    for name in (*names[:1], *names[20:24]):
        done = stage.look("-m", name, "--provider", "custom", "-z", "hi")
        assert (done.returncode, b"looks like a key" in done.stderr) == (2, True), done
        assert stage.look("model", "set", name, "--provider", "custom").returncode == 2
    if names:
        config = stage.home / "config.yaml"
        before = config.read_text()
        config.write_text(before + f"model: {{default: '{names[-1]}', provider: custom}}\n")
        assert b"looks like a key" in stage.look("-z", "hi").stderr
        for words in ("status", "dump", "doctor", "prompt-size"):
            stage.look(words)
        config.write_text(before)

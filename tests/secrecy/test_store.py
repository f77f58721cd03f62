"""Commands use secrets by name: nobody sees the value, and what may not pass does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.app.tool_services import tool_services
from hermes.core.effects import Ask, UseSecret
from hermes.core.errors import UsageError
from hermes.core.events import Record, SessionOpened, ToolFinished
from hermes.core.secrets import SecretRequest, SecretStore
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.secrecy.conftest import Here, Open
from tests.workspaces.sshd import Sshd
from tests.workspaces.sshd import missing as ssh_missing

VALUE = "tGz81-Weather_Key-55xQ"
PROCESS = re.compile(r"proc_\w+")
Rule = Callable[[Request], Step]
SHOW = 'printf "%s" "${WEATHER_TOKEN:-none}" | wc -c; echo "$WEATHER_TOKEN"; env'


def store(run: Here) -> SecretStore:
    opened = run.session.transcript.opened
    assert isinstance(opened, SessionOpened)
    found = tool_services(run.app, run.session.id, opened, ()).create(SecretStore)
    assert isinstance(found, SecretStore)
    return found


def texts(shown: list[Record]) -> list[str]:
    return [r.event.result.text for r in shown if isinstance(r.event, ToolFinished)]


def model(how: str) -> Iterator[Step | Rule]:
    """Asks for the variable twice; the second time in this way."""
    yield calls("terminal", command=SHOW)
    yield says("not yet")
    yield calls("terminal", command=SHOW, pty=how == "pty", background=how == "background")
    if how == "background":
        yield lambda request: calls(
            "process", action="wait", session_id=PROCESS.findall(request.last_text)[0], timeout=60
        )
    yield says("done")


def scripted(how: str) -> Rule:
    steps = model(how)

    def answer(request: Request) -> Step:
        step = next(steps)
        return step(request) if callable(step) else step

    return answer


@pytest.mark.parametrize("how", ["foreground", "pty", "background"])
async def test_a_name_that_was_let_pass_is_in_the_environment_and_its_value_is_not_shown(
    here: Open, how: str
) -> None:
    run = await here(
        scripted(how),
        env={"SLACK_WEATHER_TOKEN": VALUE},
        settings={"approvals.mode": "off"},
    )
    own = store(run)
    own.keep("WEATHER_TOKEN", VALUE)
    assert texts(await run.say("go"))[0].startswith("4\n")
    assert own.grant(["WEATHER_TOKEN", "NOT_THERE"]) == ("WEATHER_TOKEN",)
    last = texts(await run.say("again"))[-1]
    assert f"{len(VALUE)}\n" in last.replace("\r", "")
    assert "[secret:known#1]" in last
    assert VALUE not in last
    for file in run.app.context.home.sessions.rglob("snapshot.json"):
        assert VALUE not in file.read_text(), "what is lent is not kept"


async def test_it_goes_to_commands_on_another_machine_and_stays_nowhere_there(
    here: Open, tmp_path: Path
) -> None:
    if why := ssh_missing():
        pytest.skip(why)
    sshd = Sshd(tmp_path / "sshd")
    given = sshd.settings()
    names = ("ssh_host", "ssh_port", "ssh_key", "ssh_config")
    try:
        run = await here(
            scripted("foreground"),
            settings={
                "approvals.mode": "off",
                "terminal.backend": "ssh",
                **{f"terminal.{name}": getattr(given, name) for name in names},
            },
        )
        own = store(run)
        own.keep("WEATHER_TOKEN", VALUE)
        assert texts(await run.say("go"))[0].startswith("4\n")
        own.grant(["WEATHER_TOKEN"])
        last = texts(await run.say("again"))[-1]
        assert last.startswith(f"{len(VALUE)}\n[secret:known#1]\n")
        assert VALUE not in last
    finally:
        sshd.stop()
    for folder in (sshd.home, run.app.context.home.sessions):
        held = (path for path in folder.rglob("*") if path.is_file())
        assert [path for path in held if VALUE.encode() in path.read_bytes()] == []


async def test_it_is_gone_with_the_session(here: Open) -> None:
    run = await here([says("hi")])
    own = store(run)
    own.keep("WEATHER_TOKEN", VALUE)
    own.grant(["WEATHER_TOKEN"])
    assert run.app.shared.secret_stores
    await run.app.close_session(run.session)
    assert not run.app.shared.secret_stores


async def test_keys_of_model_providers_never_pass(here: Open) -> None:
    run = await here([says("hi")], env={"ANTHROPIC_API_KEY": VALUE, "OTHER_API_KEY": VALUE})
    own = store(run)
    assert own.grant(["ANTHROPIC_API_KEY", "OTHER_API_KEY"]) == ("OTHER_API_KEY",)
    assert own.environment() == {"OTHER_API_KEY": VALUE}


async def test_a_captured_value_is_in_the_file_and_known_at_once(here: Open) -> None:
    run = await here([calls("read_file", path="notes.txt"), says("ok")])
    asked: list[tuple[str, str, object]] = []

    async def ask(name: str, prompt: str, facts: object) -> str | None:
        asked.append((name, prompt, facts))
        return VALUE if name == "WEATHER_TOKEN" else None

    run.app.shared.ask_secret = ask
    own = store(run)
    assert own.missing(["WEATHER_TOKEN"]) == ("WEATHER_TOKEN",)
    need = SecretRequest(
        name="WEATHER_TOKEN", prompt="The key of the weather", help="https://example.org"
    )
    assert await own.capture(need) == "stored"
    assert await own.capture(SecretRequest(name="OTHER_TOKEN")) == "skipped"
    assert asked[0] == ("WEATHER_TOKEN", need.prompt, {"help": "https://example.org"})
    assert own.missing(["WEATHER_TOKEN"]) == ()
    assert "WEATHER_TOKEN" in own.names()
    assert f"WEATHER_TOKEN={VALUE}" in run.app.context.home.env_file.read_text()
    run.work.joinpath("notes.txt").write_text(VALUE)
    await run.say("look at the notes")
    assert run.server.requests[-1].results
    assert VALUE not in run.sent


async def test_without_a_person_nothing_is_captured(here: Open) -> None:
    run = await here([says("ok")])
    assert await store(run).capture(SecretRequest(name="WEATHER_TOKEN")) == "unavailable"
    with pytest.raises(UsageError):
        store(run).keep("not a name", VALUE)


async def test_the_use_of_a_secret_is_a_question(here: Open) -> None:
    run = await here([says("ok")])
    policy = run.session._deps.policy
    effect = UseSecret(name="WEATHER_TOKEN", recipient="skill weather")
    assert isinstance(policy.decide(effect, "owner", frozenset()), Ask)

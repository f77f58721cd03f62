"""Sessions that begin in one instant share what they find, and nothing that is their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.app.run_shared import enable_burst_caching
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.events import ReplyAdded, ToolFinished, ToolIntended
from hermes.core.messages import AssistantMessage, Text, ToolResult, Usage
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.credentials.event_redactor import SecretEventRedactor
from hermes.credentials.redaction import SecretRedactor

LONG = 3_600.0
WISH = SessionRequest(source="test", attended=False)
VALUE = "zq-8842-kestrel-orchard-17"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    env = {"HOME": str(tmp_path), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k"}
    config = load(Home(tmp_path / "home"), env=env, flags={"model.default": "test"})
    async with App(config, env=env, world=World()) as app:
        yield app


async def system_of(app: App, wish: SessionRequest, folder: Path) -> str:
    session = await app.open(replace(wish, cwd=str(folder)))
    opened = session.transcript.opened
    await app.close_session(session)
    assert opened is not None
    return opened.system


async def test_a_crowd_sees_a_change_when_its_moment_is_over(app: App, tmp_path: Path) -> None:
    enable_burst_caching(app, LONG)
    before = await system_of(app, WISH, tmp_path)
    (tmp_path / "AGENTS.md").write_text("Mind the gap.")
    assert await system_of(app, WISH, tmp_path) == before
    enable_burst_caching(app, 0)
    assert "Mind the gap." in await system_of(app, WISH, tmp_path)


async def test_without_a_crowd_every_change_counts_at_once(app: App, tmp_path: Path) -> None:
    before = await system_of(app, WISH, tmp_path)
    (tmp_path / "AGENTS.md").write_text("Mind the gap.")
    assert await system_of(app, WISH, tmp_path) != before


async def test_in_a_crowd_everybody_has_their_own_words(app: App, tmp_path: Path) -> None:
    enable_burst_caching(app, LONG)
    texts = [await system_of(app, WISH.with_extra(extra), tmp_path) for extra in ("one", "two")]
    assert ["one" in texts[0], "two" in texts[1], texts[0] == texts[1]] == [True, True, False]


async def test_in_a_crowd_everybody_knows_their_own_id(app: App, tmp_path: Path) -> None:
    enable_burst_caching(app, LONG)
    wish = replace(WISH, tell_id=True)
    texts = [await system_of(app, replace(wish, session_id=id), tmp_path) for id in ("a1", "b2")]
    assert ["a1" in texts[0], "b2" in texts[1]] == [True, True]


async def test_in_a_crowd_each_folder_has_its_own_rules(app: App, tmp_path: Path) -> None:
    enable_burst_caching(app, LONG)
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "AGENTS.md").write_text(f"Keep {name}.")
    assert "Keep left." in await system_of(app, WISH, tmp_path / "left")
    assert "Keep right." in await system_of(app, WISH, tmp_path / "right")


def test_a_secret_that_was_written_down_is_found_when_the_moment_is_over(tmp_path: Path) -> None:
    home = Home(tmp_path)
    secrecy = SecretRedactor(load(home, env={}), {})
    secrecy.enable_burst_caching(LONG)
    assert secrecy.text(f"say {VALUE}") == f"say {VALUE}"
    home.env_file.write_text(f"SOME_TOKEN={VALUE}\n")
    secrecy.enable_burst_caching(0)
    assert VALUE not in secrecy.text(f"say {VALUE}")


def test_a_secret_that_was_given_here_is_masked_at_once_in_a_crowd_too(tmp_path: Path) -> None:
    secrecy = SecretRedactor(load(Home(tmp_path), env={}), {})
    secrecy.enable_burst_caching(LONG)
    secrecy.count()
    secrecy.know(VALUE)
    assert VALUE not in secrecy.text(f"say {VALUE}")


def test_a_tool_round_checks_for_new_secrets_with_its_reply_and_its_result(tmp_path: Path) -> None:
    home = Home(tmp_path)
    secrecy = SecretRedactor(load(home, env={}), {})
    checks: list[int] = []

    def count() -> int:
        checks.append(1)
        return 0

    secrecy.watch(tuple, home.env_file, count)
    redactor = SecretEventRedactor(secrecy)
    reply = AssistantMessage(parts=(Text(text="I will save the token."),))
    redactor.durable(ReplyAdded(message=reply, usage=Usage(), model="m", provider="p"))
    redactor.durable(ToolIntended(call_id="1", name="terminal", repeat="never"))
    home.env_file.write_text(f"SOME_TOKEN={VALUE}\n")
    said = ToolResult(call_id="1", name="terminal", parts=(Text(text=f"saved {VALUE}"),))
    result = redactor.result(said)
    stored = redactor.durable(ToolFinished(result=result))
    assert VALUE not in repr((result, stored))
    assert len(checks) == 2

"""A tape hears everything that goes to a model and comes back, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from hermes.core.errors import ProviderError, UsageError
from hermes.core.messages import user_says
from hermes.core.prompt import Prompt, Reply, TextDelta
from hermes.core.world import SystemClock, World
from hermes.net.http import HttpClient, Timeouts, current_interceptor
from hermes.providers.endpoint import Endpoint
from hermes.providers.pipeline import build_pipeline
from hermes.providers.recorded.frames import TapeRun
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.player import InterceptedProvider, TapePlayer
from hermes.providers.recorded.tape import TapedRun, TapeRecorder, read_tape, read_tapes
from hermes.testing.faults import cut, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails, says

RUN = TapeRun(version="1", after=0, at=0.0, facts={})
WORDS = "An answer in several pieces. " * 4


class Quick(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Silent:
    """A stage that lets everything pass and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def on_request(self, recorded: object, url: str, body: bytes) -> None:
        self.asked.append(body)

    async def wait_until_abandoned(self) -> None:
        return

    def advance(self, seconds: float) -> None:
        return


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.aclose()


def tape_in(folder: Path, *secrets: str) -> TapeRecorder:
    return TapeRecorder(folder, RUN, mask=SecretMask(secrets), clock=SystemClock())


def endpoint(server: ScriptedServer) -> Endpoint:
    return Endpoint(name="test", wire="chat", url=f"{server.url}/v1", model="m", key="key-12345678")


async def ask(provider: InterceptedProvider, text: str = "Hi") -> Reply:
    prompt = Prompt(system="Be brief.", messages=(user_says(text),))
    async with aclosing(provider.reply(prompt)) as items:
        async for item in items:
            if isinstance(item, Reply):
                return item
    raise AssertionError("no reply")


async def taped(
    http: HttpClient, folder: Path, *steps: Step, texts: tuple[str, ...] = ("Hi",)
) -> tuple[TapedRun, list[Reply], list[bytes]]:
    async with ScriptedServer(steps) as server:
        inner = build_pipeline(endpoint(server), http=http, world=World(clock=Quick()))
        provider = InterceptedProvider(inner, tape_in(folder, "key-12345678"))
        replies = [await ask(provider, text) for text in texts]
        sent = [request.raw for request in server.requests]
    (found,) = read_tapes(folder)
    return found, replies, sent


async def test_requests_and_answers_are_kept_byte_for_byte(
    http: HttpClient, tmp_path: Path
) -> None:
    steps = (paced(says(WORDS), chunk=10, between_seconds=0.001), says("Two."))
    found, _, sent = await taped(http, tmp_path, *steps, texts=("Hi", "Again"))
    assert [exchange.body for exchange in found.exchanges] == sent
    first = found.exchanges[0]
    assert (first.status, first.ending, first.masked) == (200, "whole", 0)
    assert len(first.sizes) > 3 and sum(first.sizes) == len(first.answer)
    assert len(first.times) == len(first.sizes) + 1
    assert first.headers["content-type"].startswith("text/event-stream")
    assert "authorization" not in str(found).lower() and "key-12345678" not in str(found)


async def test_the_player_gives_the_same_replies_without_a_server(
    http: HttpClient, tmp_path: Path
) -> None:
    steps = (fails(429, retry_after=0.01), cut(says(WORDS), after_chunks=3), says("and more."))
    found, replies, sent = await taped(http, tmp_path, *steps)
    assert [exchange.status for exchange in found.exchanges] == [429, 200, 200]
    stage = Silent()
    where = Endpoint(name="test", wire="chat", url="http://127.0.0.1:9/v1", model="m")
    inner = build_pipeline(where, http=http, world=World(clock=Quick()))
    assert [await ask(InterceptedProvider(inner, TapePlayer(found.exchanges, stage)))] == replies
    assert stage.asked == sent


async def test_a_connection_that_fails_is_kept_with_its_reason(
    http: HttpClient, tmp_path: Path
) -> None:
    where = Endpoint(name="test", wire="chat", url="http://127.0.0.1:9/v1", model="m")
    provider = InterceptedProvider(
        build_pipeline(where, http=http, world=World(clock=Quick())), tape_in(tmp_path)
    )
    with pytest.raises(ProviderError) as raised:
        await ask(provider)
    (found,) = read_tapes(tmp_path)
    assert found.exchanges[-1].fault is not None
    assert found.exchanges[-1].fault.message == str(raised.value)


async def test_an_answer_that_is_left_is_kept_as_far_as_it_came(
    http: HttpClient, tmp_path: Path
) -> None:
    step = paced(says(WORDS), chunk=5, between_seconds=0.02)
    async with ScriptedServer([step]) as server:
        inner = build_pipeline(endpoint(server), http=http, world=World())
        prompt = Prompt(system="", messages=(user_says("Hi"),))
        async with aclosing(InterceptedProvider(inner, tape_in(tmp_path)).reply(prompt)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    break
    (found,) = read_tapes(tmp_path)
    (exchange,) = found.exchanges
    assert (exchange.status, exchange.ending) == (200, "left")
    assert 0 < len(exchange.answer) < 2_000


async def test_logins_and_lists_of_models_are_not_taped(http: HttpClient, tmp_path: Path) -> None:
    pages = {"/oauth/token": {"access_token": "t"}}
    async with ScriptedServer(pages=pages) as server:
        current_interceptor.set(tape_in(tmp_path))
        body = b"refresh_token=secret"
        async with http.post(
            f"{server.url}/oauth/token", body=body, headers={}, timeouts=Timeouts()
        ) as answer:
            assert await answer.read() == b'{"access_token":"t"}'
        current_interceptor.set(None)
    assert read_tapes(tmp_path) == ()


def test_every_process_has_a_tape_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "one"
    for number in range(3):
        tape = TapeRecorder(
            folder,
            TapeRun(version="1", after=number, at=0.0, facts={}),
            mask=SecretMask(()),
            clock=SystemClock(),
        )
        tape.open()
    assert [each.run.after for each in read_tapes(folder)] == [0, 1, 2]
    made = (folder.parent, folder, *folder.iterdir())
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)


async def test_a_long_conversation_makes_a_short_tape(http: HttpClient, tmp_path: Path) -> None:
    """Every request repeats all that came before it; the tape does not."""
    messages = tuple(user_says(f"Line {number} of many: {number * 7919}") for number in range(400))
    async with ScriptedServer([says("Yes.")] * 40, strict=False) as server:
        inner = build_pipeline(endpoint(server), http=http, world=World())
        provider = InterceptedProvider(inner, tape_in(tmp_path))
        for number in range(40):
            prompt = Prompt(system="Be brief.", messages=messages[: 200 + 5 * number])
            async with aclosing(provider.reply(prompt)) as items:
                async for _ in items:
                    pass
        sent = [request.raw for request in server.requests]
    (found,) = read_tapes(tmp_path)
    assert [exchange.body for exchange in found.exchanges] == sent
    size = sum(len(path.read_bytes()) for path in (tmp_path / "000001.tape",))
    assert size < sum(map(len, sent)) / 20


async def test_a_folder_that_cannot_be_written_does_not_stop_the_session(
    http: HttpClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    async with ScriptedServer([says("One."), says("Two.")]) as server:
        inner = build_pipeline(endpoint(server), http=http, world=World())
        provider = InterceptedProvider(inner, tape_in(blocked / "tapes"))
        assert [(await ask(provider)).message.text for _ in range(2)] == ["One.", "Two."]
    assert caplog.messages == ["recording stopped"]


def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    path = tmp_path / "000001.tape"
    path.write_bytes(b"hello")
    with pytest.raises(UsageError, match="is damaged: it cannot be decompressed"):
        read_tape(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_tape(tmp_path / "none.tape")

"""The contract test suite for platform adapters, for those of Hermes and of other authors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path

import pytest

from hermes.codec.json import decode, encode
from hermes.core.errors import (
    LoginRejected,
    PlatformError,
    PlatformUnreachable,
    PostUncertain,
    TargetGone,
)
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.surfaces.gateway.platform import (
    Address,
    Inbound,
    Manifest,
    Platform,
    PlatformContext,
    Post,
)

SECONDS = 30.0
HARD_MARKDOWN = (
    "**left open",
    "`code",
    "```py\nleft open",
    "1 < 2 & <b>x</i>",
    "_a*b_c*",
    "[a](javascript:alert(1)) ![](x) <https://a.b>",
    "> quote\n> > deeper\n\n- a\n  1. b\n\n---\n# Head",
    "| a | b |\n|---|---|\n| 1 | **2** |",
    "||hidden|| \\* \\_ ~~gone~~ 👩‍👩‍👧 \u200b x",
    "/not-a-command @everyone #tag",
)


class PlatformHarness(ABC):
    """A platform as its people see it. A fault returns False when the platform cannot have it."""

    manifest: Manifest
    # A chat in which the person writes and the bot may post.
    address: Address

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """The settings with valid credentials, by environment name."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """A person, whom the platform lets write to the bot, writes in the chat."""

    @abstractmethod
    async def shown(self) -> list[str]:
        """The texts of the bot that the chat shows, oldest first, without markup."""

    def extra(self) -> dict[str, object]:
        return {}

    def wrong_settings(self) -> dict[str, str]:
        """The settings with credentials that the platform refuses; {} if there are none."""
        return {}

    def gone_address(self) -> Address | None:
        """A chat that does not exist."""
        return None

    async def repeat_events(self) -> bool:
        """The platform delivers each of the next events twice."""
        return False

    async def echo(self) -> bool:
        """The platform delivers a message of the bot itself."""
        return False

    async def lose_response(self) -> bool:
        """The next post has its effect, but the connection breaks before the response."""
        return False

    async def limit_rate(self, seconds: float) -> bool:
        """The next post is refused because there were too many, for so long."""
        return False

    async def break_connection(self) -> bool:
        """Every connection breaks once."""
        return False

    def away(self) -> bool:
        """From now on, `settings` and `extra` name a place where no server listens."""
        return False


class Connection:
    """A running adapter. `events` is what it delivered; `refuses` lets deliveries fail."""

    def __init__(self) -> None:
        self.events: list[Inbound] = []
        self.accounts: list[str] = []
        self.refuses = False
        self.refused = asyncio.Event()
        self._changed = asyncio.Event()
        self.task: asyncio.Task[None]

    async def deliver(self, event: Inbound) -> None:
        if self.refuses:
            self.refused.set()
            raise OSError("the disk is full")
        # An event must survive being stored.
        self.events.append(decode(Inbound, encode(event)))
        self._changed.set()

    def connected(self, account: str) -> None:
        self.accounts.append(account)
        self._changed.set()

    async def wait_for(self, *, events: int = 0) -> list[Inbound]:
        """Wait until the adapter is connected and has delivered so many events."""
        async with asyncio.timeout(SECONDS):
            while not self.accounts or len(self.events) < events:
                if self.task.done():
                    self.task.result()
                    raise AssertionError("the adapter ended")
                self._changed.clear()
                waiter = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait((waiter, self.task), return_when=asyncio.FIRST_COMPLETED)
                waiter.cancel()
        return self.events


@asynccontextmanager
async def connect(adapter: Platform) -> AsyncIterator[Connection]:
    """Run an adapter within the block."""
    connection = Connection()
    connection.task = asyncio.ensure_future(adapter.run(connection.deliver, connection))
    try:
        yield connection
    finally:
        connection.task.cancel()
        done, _ = await asyncio.wait((connection.task,), timeout=SECONDS)
        assert done, "the adapter does not end when it is cancelled"


class PlatformContract(ABC):
    """Derive it in your tests as `class TestMine(PlatformContract)` and return your harness."""

    @abstractmethod
    def harness(self, folder: Path) -> AbstractAsyncContextManager[PlatformHarness]: ...

    def adapter(
        self, harness: PlatformHarness, folder: Path, settings: dict[str, str] | None = None
    ) -> Platform:
        """A new adapter for the same home, as after a restart."""
        for name in ("state", "media"):
            (folder / name).mkdir(exist_ok=True)
        context = PlatformContext(
            settings=settings or harness.settings(),
            extra=dict(harness.extra()),
            folder=folder / "state",
            media=folder / "media",
            max_media_bytes=1_000_000,
            http=HttpClient(),
            world=World(),
            commands=(("new", "Start a new conversation"), ("reload-mcp", "Connect again")),
        )
        module, _, name = harness.manifest.adapter.partition(":")
        adapter: Platform = getattr(import_module(module), name)(context)
        return adapter

    async def test_a_message_arrives_with_its_sender_and_chat(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                await harness.say("hello there")
                (event,) = await connection.wait_for(events=1)
            assert "hello there" in event.text
            assert event.address == harness.address
            assert event.key
            assert event.sender.id
            assert event.at > 0
            assert event.is_addressed

    async def test_messages_arrive_in_order_with_different_keys(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                for n in range(5):
                    await harness.say(f"message {n}")
                events = await connection.wait_for(events=5)
            assert [event.text[-9:] for event in events] == [f"message {n}" for n in range(5)]
            assert len({event.key for event in events}) == 5

    async def test_an_event_that_comes_twice_has_one_key(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                if not await harness.repeat_events():
                    pytest.skip("the platform does not repeat events")
                await harness.say("once")
                await harness.say("last")
                async with asyncio.timeout(SECONDS):
                    while not any("last" in event.text for event in connection.events):
                        await connection.wait_for(events=len(connection.events) + 1)
            assert len({event.key for event in connection.events}) == 2

    async def test_an_event_that_was_not_stored_comes_again(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                connection.refuses = True
                await harness.say("do not lose me")
                async with asyncio.timeout(SECONDS):
                    await connection.refused.wait()
            async with connect(self.adapter(harness, tmp_path)) as connection:
                events = await connection.wait_for(events=1)
            assert ["do not lose me" in event.text for event in events] == [True]

    async def test_a_message_from_the_time_between_two_connections_arrives(
        self, tmp_path: Path
    ) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                await harness.say("first")
                await connection.wait_for(events=1)
            await harness.say("meanwhile")
            async with connect(self.adapter(harness, tmp_path)) as connection:
                while not any("meanwhile" in event.text for event in connection.events):
                    await connection.wait_for(events=len(connection.events) + 1)

    async def test_a_broken_connection_ends_as_unreachable_or_recovers(
        self, tmp_path: Path
    ) -> None:
        async with self.harness(tmp_path) as harness:
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for()
                if not await harness.break_connection():
                    pytest.skip("the platform holds no connection")
                await harness.say("after the break")
                try:
                    await connection.wait_for(events=1)
                    return
                except PlatformUnreachable:
                    pass
            async with connect(self.adapter(harness, tmp_path)) as connection:
                await connection.wait_for(events=1)

    async def test_the_bot_does_not_hear_itself(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            async with connect(adapter) as connection:
                await connection.wait_for()
                await adapter.post(harness.address, Post(text="from the bot"), "k1")
                await harness.echo()
                await harness.say("from a person")
                events = await connection.wait_for(events=1)
            assert ["from a person" in event.text for event in events] == [True]

    async def test_a_post_is_shown_once(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            async with connect(adapter) as connection:
                await connection.wait_for()
                message_id = await adapter.post(harness.address, Post(text="one **two**"), "k1")
            assert message_id
            assert ["two" in text for text in await harness.shown()] == [True]

    async def test_hard_markdown_and_the_longest_text_are_accepted(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            limit = harness.manifest.abilities.max_chars
            texts = (*HARD_MARKDOWN, "word " * (limit // 5 - 1))
            async with connect(adapter) as connection:
                await connection.wait_for()
                for n, text in enumerate(texts):
                    assert await adapter.post(harness.address, Post(text=text), f"k{n}")
                    plain = Post(text=text, is_plain=True)
                    assert await adapter.post(harness.address, plain, f"p{n}")
            assert len(await harness.shown()) == 2 * len(texts)

    async def test_an_edit_replaces_the_text_and_may_change_nothing(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            if not harness.manifest.abilities.edits:
                pytest.skip("the platform has no edits")
            adapter = self.adapter(harness, tmp_path)
            async with connect(adapter) as connection:
                await connection.wait_for()
                message_id = await adapter.post(harness.address, Post(text="draft ▉"), "k1")
                for _ in range(2):
                    await adapter.edit(harness.address, message_id, Post(text="**final**"))
            assert [text.strip("*") for text in await harness.shown()] == ["final"]

    async def test_a_post_whose_response_is_lost_is_uncertain_and_never_doubled(
        self, tmp_path: Path
    ) -> None:
        async with self.harness(tmp_path) as harness:
            adapter, post, to = (
                self.adapter(harness, tmp_path),
                Post(text="unique"),
                harness.address,
            )
            async with connect(adapter) as connection:
                await connection.wait_for()
                if not await harness.lose_response():
                    pytest.skip("the platform cannot lose a response")
                with pytest.raises(PostUncertain):
                    await adapter.post(to, post, "k1")
                resolution = harness.manifest.abilities.resolution
                if resolution == "key":
                    assert await adapter.post(to, post, "k1")
                if resolution == "read_back":
                    assert await adapter.find_post(to, post, "k1", 0.0)
                    assert not await adapter.find_post(to, post, "k2", 0.0)
            assert ["unique" in text for text in await harness.shown()] == [True]

    async def test_a_rate_limit_is_unreachable_with_its_delay(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            async with connect(adapter) as connection:
                await connection.wait_for()
                if not await harness.limit_rate(7.0):
                    pytest.skip("the platform has no rate limit")
                with pytest.raises(PlatformUnreachable) as caught:
                    await adapter.post(harness.address, Post(text="too fast"), "k1")
            assert caught.value.retry_after == 7.0
            assert await harness.shown() == []

    async def test_a_platform_that_is_away_is_unreachable(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            if not harness.away():
                pytest.skip("the platform is never away")
            adapter = self.adapter(harness, tmp_path)
            with pytest.raises(PlatformUnreachable):
                await adapter.check()
            with pytest.raises(PlatformUnreachable):
                await adapter.post(harness.address, Post(text="nobody there"), "k1")
            async with connect(adapter) as connection:
                with pytest.raises(PlatformUnreachable):
                    await connection.wait_for()

    async def test_wrong_credentials_are_a_rejected_login(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            if not (wrong := harness.wrong_settings()):
                pytest.skip("the platform has no login")
            with pytest.raises(LoginRejected):
                await self.adapter(harness, tmp_path, wrong).check()
            async with connect(self.adapter(harness, tmp_path, wrong)) as connection:
                with pytest.raises(LoginRejected):
                    await connection.wait_for()

    async def test_the_account_is_named(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter = self.adapter(harness, tmp_path)
            account = await adapter.check()
            async with connect(adapter) as connection:
                await connection.wait_for()
            assert account
            assert connection.accounts == [account]

    async def test_a_chat_that_does_not_exist_is_gone(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter, gone = self.adapter(harness, tmp_path), harness.gone_address()
            if gone is None:
                pytest.skip("every address exists")
            async with connect(adapter) as connection:
                await connection.wait_for()
                with pytest.raises(TargetGone):
                    await adapter.post(gone, Post(text="anybody?"), "k1")

    async def test_courtesies_raise_nothing_but_platform_errors(self, tmp_path: Path) -> None:
        async with self.harness(tmp_path) as harness:
            adapter, to = self.adapter(harness, tmp_path), harness.address
            async with connect(adapter) as connection:
                await connection.wait_for()
                message_id = await adapter.post(to, Post(text="hello"), "k1")
                await adapter.show_typing(to)
                for work in (
                    adapter.react(to, message_id, "✅"),
                    adapter.react(to, message_id, ""),
                    adapter.delete(to, message_id),
                ):
                    try:
                        await work
                    except PlatformError as error:
                        assert str(error)
            if harness.manifest.abilities.deletes:
                assert await harness.shown() == []

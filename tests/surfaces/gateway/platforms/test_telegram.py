"""The Telegram adapter against the fake Bot API: groups, files, buttons, webhooks and faults."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import (
    ConfigError,
    LoginRejected,
    PlatformUnreachable,
    PostRejected,
    PostUncertain,
    TargetGone,
)
from hermes.core.world import World
from hermes.net.http import HttpClient, Timeouts
from hermes.surfaces.gateway.platform import (
    Address,
    Choice,
    Inbound,
    OutboundFile,
    PlatformContext,
    Post,
    Quote,
)
from hermes.surfaces.gateway.platforms.contract_checks import Connection, connect
from hermes.surfaces.gateway.platforms.telegram.adapter import Telegram
from hermes.testing.clock import VirtualClock, seeded_world
from hermes.testing.platforms.faults import Fault
from hermes.testing.platforms.telegram import TOKEN, FakeTelegram
from hermes.testing.platforms.telegram_chats import ApiError

ADA, GROUP, FORUM = 11, -500, -1_000_000_000_600
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def address(chat: int = ADA, thread: str = "") -> Address:
    return Address(platform="telegram", chat_id=str(chat), thread_id=thread)


def build(
    server: FakeTelegram,
    folder: Path,
    *,
    world: World | None = None,
    extra: dict[str, Any] | None = None,
    commands: tuple[tuple[str, str], ...] = (),
    **settings: Any,
) -> Telegram:
    named = {f"TELEGRAM_{name}": value for name, value in settings.items()}
    urls = {"base_url": f"{server.url}/bot", "base_file_url": f"{server.url}/file/bot"}
    return Telegram(
        PlatformContext(
            settings={"TELEGRAM_BOT_TOKEN": TOKEN, **named},
            extra={**urls, **(extra or {})},
            folder=folder,
            media=folder,
            max_media_bytes=1_000_000,
            http=HttpClient(),
            world=world or World(),
            commands=commands,
        )
    )


@pytest.fixture
async def server() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram.start() as server:
        server.chats.add_person(ADA)
        server.chats.add_group(GROUP)
        server.chats.add_group(FORUM, topics=(7,))
        yield server


@asynccontextmanager
async def connected(adapter: Telegram) -> AsyncIterator[Connection]:
    async with connect(adapter) as connection:
        await connection.wait_for()
        yield connection


async def first_event(
    server: FakeTelegram, folder: Path, *messages: dict[str, Any], **settings: Any
) -> Inbound:
    """The event of the first message that passes."""
    async with connected(build(server, folder, **settings)) as connection:
        for message in messages:
            server.chats.say(server.chats.add_person(ADA), **message)
        server.chats.say(server.chats.add_person(ADA), "end")
        return (await connection.wait_for(events=1))[0]


@pytest.mark.parametrize(
    ("text", "settings", "passes"),
    [
        ("hello", {}, True),
        ("hello", {"REQUIRE_MENTION": "true"}, False),
        ("@hermes_bot hello", {"REQUIRE_MENTION": "true"}, True),
        ("@Hermes_Bot, hello", {"REQUIRE_MENTION": "true", "MENTION_PATTERNS": "hermes"}, True),
        ("@other hello", {"REQUIRE_MENTION": "true"}, False),
        ("/status", {"REQUIRE_MENTION": "true"}, True),
        ("/status@hermes_bot", {"REQUIRE_MENTION": "true"}, True),
        ("/status@other_bot", {}, False),
        ("hello", {"REQUIRE_MENTION": "true", "FREE_RESPONSE_CHATS": str(GROUP)}, True),
        ("hello", {"ALLOWED_CHATS": "-1"}, False),
        ("hello", {"ALLOWED_CHATS": f"-1, {GROUP}"}, True),
    ],
)
async def test_a_message_of_a_group_passes_by_the_rules_of_mentions(
    server: FakeTelegram, tmp_path: Path, text: str, settings: dict[str, str], passes: bool
) -> None:
    event = await first_event(server, tmp_path, {"text": text, "chat": GROUP}, **settings)
    assert (event.address == address(GROUP)) is passes
    if passes:
        assert "hermes_bot" not in event.text.lower().replace("@hermes_bot,", "")
        assert event.is_addressed


async def test_unaddressed_messages_can_be_observed(server: FakeTelegram, tmp_path: Path) -> None:
    settings = {"REQUIRE_MENTION": "true", "OBSERVE_UNMENTIONED_GROUP_MESSAGES": "true"}
    event = await first_event(server, tmp_path, {"text": "by the way", "chat": GROUP}, **settings)
    assert (event.text, event.is_addressed) == ("by the way", False)


async def test_a_reply_to_the_bot_addresses_it(server: FakeTelegram, tmp_path: Path) -> None:
    own = server.chats.post(GROUP, text="my answer")
    event = await first_event(
        server,
        tmp_path,
        {"text": "why?", "chat": GROUP, "reply_to_message": own},
        REQUIRE_MENTION="true",
    )
    assert event.quote == Quote(
        message_id=str(own["message_id"]), text="my answer", author_id="4000", is_own=True
    )


async def test_a_topic_is_a_thread_with_its_skill(server: FakeTelegram, tmp_path: Path) -> None:
    topics = [{"chat_id": FORUM, "topics": [{"name": "Ops", "thread_id": 7, "skill": "oncall"}]}]
    adapter = build(server, tmp_path, extra={"group_topics": topics})
    async with connected(adapter) as connection:
        server.chats.say(
            server.chats.add_person(ADA),
            "disk full",
            chat=FORUM,
            message_thread_id=7,
            is_topic_message=True,
        )
        (event,) = await connection.wait_for(events=1)
        await adapter.post(event.address, Post(text="on it"), "k1")
        await adapter.post(address(FORUM, "1"), Post(text="general"), "k2")
    assert (event.address, event.topic, event.skills) == (address(FORUM, "7"), "Ops", ("oncall",))
    sent = server.calls_of("sendMessage")
    assert [call.fields.get("message_thread_id") for call in sent] == [7, None]


async def test_messages_of_bots_are_dropped_unless_allowed(
    server: FakeTelegram, tmp_path: Path
) -> None:
    other = {"id": 77, "is_bot": True, "first_name": "Other", "username": "other_bot"}
    async with connected(build(server, tmp_path)) as connection:
        server.chats.say(other, "loop?", chat=GROUP)
        server.chats.say(server.chats.add_person(ADA), "end")
        assert [event.text for event in await connection.wait_for(events=1)] == ["end"]
    async with connected(build(server, tmp_path, ALLOW_BOTS="all")) as connection:
        server.chats.say(other, "loop?", chat=GROUP)
        assert [event.text for event in await connection.wait_for(events=1)] == ["loop?"]


async def test_the_first_start_drops_old_messages_and_later_ones_keep_them(
    server: FakeTelegram, tmp_path: Path
) -> None:
    server.chats.say(server.chats.add_person(ADA), "from before")
    async with connected(build(server, tmp_path)) as connection:
        server.chats.say(server.chats.add_person(ADA), "now")
        assert [event.text for event in await connection.wait_for(events=1)] == ["now"]


async def test_reordered_updates_arrive_in_order(server: FakeTelegram, tmp_path: Path) -> None:
    server.reverses_updates = True
    ada = server.chats.add_person(ADA)
    (tmp_path / "4000.started").touch()
    for n in range(4):
        server.chats.say(ada, f"{n}")
    async with connected(build(server, tmp_path)) as connection:
        events = await connection.wait_for(events=4)
    assert [event.text for event in events] == ["0", "1", "2", "3"]


async def test_an_update_that_makes_no_sense_does_not_stop_the_others(
    server: FakeTelegram, tmp_path: Path
) -> None:
    async with connected(build(server, tmp_path)) as connection:
        server.chats.push("message", {"message_id": "x"})
        server.chats.push("poll", {"id": "1"})
        server.chats.say(server.chats.add_person(ADA), "fine")
        assert [event.text for event in await connection.wait_for(events=1)] == ["fine"]


async def test_another_instance_is_waited_for_and_then_named(
    server: FakeTelegram, tmp_path: Path
) -> None:
    clock = VirtualClock(settle_seconds=0.05)
    server.fail("getUpdates", *[Fault(kind="conflict")] * 4)
    adapter = build(server, tmp_path, world=seeded_world(1, clock))
    connection = Connection()

    async def run() -> None:
        await adapter.run(connection.deliver, connection)

    with pytest.raises(LoginRejected, match="Another instance"):
        await clock.run_until(run())
    assert clock.monotonic() == 70.0


async def test_a_conflict_that_ends_is_survived(server: FakeTelegram, tmp_path: Path) -> None:
    clock = VirtualClock(settle_seconds=0.05)
    server.fail("getUpdates", *[Fault(kind="conflict")] * 3)
    async with connected(build(server, tmp_path, world=seeded_world(1, clock))) as connection:
        server.chats.say(server.chats.add_person(ADA), "still here")
        await clock.run_until(connection.wait_for(events=1))


async def test_a_button_is_pressed_and_answered(server: FakeTelegram, tmp_path: Path) -> None:
    adapter = build(server, tmp_path)
    choices = (Choice(id="a1:yes", label="Allow"), Choice(id="a1:no", label="Deny"))
    async with connected(adapter) as connection:
        message_id = await adapter.post(address(), Post(text="Run `ls`?", choices=choices), "k1")
        query = server.chats.press(server.chats.add_person(ADA), int(message_id), "a1:yes")
        (event,) = await connection.wait_for(events=1)
        await adapter.answer_choice(event, "Allowed")
        await adapter.edit(address(), message_id, Post(text="Run `ls`? Allowed."))
    assert (event.choice, event.message_id) == ("a1:yes", message_id)
    assert server.chats.callback_answers == {query["id"]: "Allowed"}
    message = server.chats.messages[ADA, int(message_id)]
    assert (message["text"], "reply_markup" in message) == ("Run ls? Allowed.", False)


async def test_a_button_with_a_long_id_is_refused_before_it_is_sent(
    server: FakeTelegram, tmp_path: Path
) -> None:
    with pytest.raises(PostRejected):
        post = Post(text="?", choices=(Choice(id="x" * 65, label="x"),))
        await build(server, tmp_path).post(address(), post, "k1")
    assert server.calls == []


async def test_the_menu_has_names_that_telegram_accepts(
    server: FakeTelegram, tmp_path: Path
) -> None:
    commands = (("help", "Help"), ("reload-mcp", "Reload"), ("new", "x" * 300))
    extra = {"command_menu": {"max_commands": 2, "priority": ["new"]}}
    async with connected(build(server, tmp_path, commands=commands, extra=extra)):
        pass
    assert [each["command"] for each in server.chats.commands["default"]] == ["new", "help"]
    assert server.chats.commands["all_group_chats"] == server.chats.commands["default"]


@pytest.mark.parametrize(
    ("fields", "kind", "name"),
    [
        ({"photo": "list"}, "image", ""),
        ({"voice": {"mime_type": "audio/ogg"}}, "voice", ""),
        ({"document": {"file_name": "a b.pdf"}}, "file", "a b.pdf"),
        ({"sticker": {"emoji": "👍"}}, "sticker", ""),
    ],
)
async def test_a_file_is_described_and_downloaded(
    server: FakeTelegram, tmp_path: Path, fields: dict[str, Any], kind: str, name: str
) -> None:
    adapter = build(server, tmp_path)
    (field, value), small = *fields.items(), server.chats.add_file(b"tiny")
    big = server.chats.add_file(b"content of the file")
    content: Any = [small, big] if value == "list" else {**big, **value}
    async with connected(adapter) as connection:
        server.chats.say(server.chats.add_person(ADA), caption="look", **{field: content})
        (event,) = await connection.wait_for(events=1)
    (file,) = event.files
    assert (event.text, file.kind, file.name) == ("look", kind, name)
    stored = await adapter.download(file)
    assert read(stored.path) == b"content of the file"
    assert Path(stored.path).suffix == (".pdf" if name else "")


@pytest.mark.parametrize(("size", "data"), [(5_000_000, b"x"), (None, bytes(1_000_001))])
async def test_a_file_that_is_too_large_is_a_problem_and_not_stored(
    server: FakeTelegram, tmp_path: Path, size: int | None, data: bytes
) -> None:
    adapter = build(server, tmp_path)
    file = {**server.chats.add_file(data, size), "file_size": size or 0}
    async with connected(adapter) as connection:
        server.chats.say(server.chats.add_person(ADA), document=file)
        (event,) = await connection.wait_for(events=1)
    stored = await adapter.download(event.files[0])
    assert (stored.path, stored.problem) == ("", "larger than 1 MB")
    assert names(tmp_path) == ["4000.started"]


@pytest.mark.parametrize(
    ("name", "data", "options", "method"),
    [
        ("a.png", PNG, {"kind": "image"}, "sendPhoto"),
        ("a.png", PNG + bytes(10 * 1024 * 1024), {"kind": "image"}, "sendDocument"),
        ("a.png", PNG, {"kind": "image", "as_document": True}, "sendDocument"),
        ("a.pdf", b"%PDF", {"kind": "file"}, "sendDocument"),
        ("a.ogg", b"OggS", {"kind": "audio", "as_voice": True}, "sendVoice"),
        ("a.mp4", b"mp4", {"kind": "video"}, "sendVideo"),
    ],
)
async def test_a_file_is_sent_in_the_fitting_form(
    server: FakeTelegram,
    tmp_path: Path,
    name: str,
    data: bytes,
    options: dict[str, Any],
    method: str,
) -> None:
    (tmp_path / name).write_bytes(data)
    file = OutboundFile(path=str(tmp_path / name), caption="**see** <this>", **options)
    message_id = await build(server, tmp_path).post(address(), Post(file=file), "k1")
    (call,) = server.calls_of(method)
    assert server.chats.messages[ADA, int(message_id)]["caption"] == "see <this>"
    assert call.fields[method.removeprefix("send").lower()].data == data


async def test_a_long_caption_is_cut_and_a_missing_or_huge_file_is_refused(
    server: FakeTelegram, tmp_path: Path
) -> None:
    adapter = build(server, tmp_path)
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    file = OutboundFile(kind="file", path=str(tmp_path / "a.pdf"), caption="😀" * 600)
    await adapter.post(address(), Post(file=file), "k1")
    assert server.chats.texts(ADA) == ["😀" * 511 + "…"]
    with pytest.raises(PostRejected, match="cannot be read"):
        missing = OutboundFile(kind="file", path=str(tmp_path / "gone.pdf"))
        await adapter.post(address(), Post(file=missing), "k2")
    with (tmp_path / "big.bin").open("wb") as big:
        big.truncate(51 * 1024 * 1024)
    with pytest.raises(PostRejected, match="50 MB"):
        huge = OutboundFile(kind="file", path=str(tmp_path / "big.bin"))
        await adapter.post(address(), Post(file=huge), "k3")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
async def test_a_recording_becomes_a_voice_note(server: FakeTelegram, tmp_path: Path) -> None:
    wav = tmp_path / "a.wav"
    command = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=0.2", str(wav)]
    await asyncio.to_thread(subprocess.run, command, check=True)
    file = OutboundFile(kind="audio", path=str(wav), as_voice=True)
    await build(server, tmp_path).post(address(), Post(file=file), "k1")
    (call,) = server.calls_of("sendVoice")
    assert call.fields["voice"].data.startswith(b"OggS")


async def test_text_that_telegram_would_refuse_with_markup_is_sent_plain(
    server: FakeTelegram, tmp_path: Path
) -> None:
    wide = "| a | b |\n|---|---|\n" + "".join(f"| {'x' * n} | y |\n" for n in range(75))
    adapter = build(server, tmp_path)
    assert len(wide) <= 4096
    await adapter.post(address(), Post(text=wide), "k1")
    await adapter.post(address(), Post(text="[](x)<!-- -->"), "k2")
    assert server.chats.texts(ADA)[0] == wide.strip()
    with pytest.raises(PostRejected):
        await adapter.post(address(), Post(text=" \n"), "k3")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(kind="server_error"), PostUncertain),
        (Fault(kind="drop_before"), PostUncertain),
        (Fault(kind="login"), LoginRejected),
        (Fault(kind="rate_limit", retry_after=3), PlatformUnreachable),
    ],
)
async def test_a_fault_of_a_post_is_what_is_known_about_it(
    server: FakeTelegram, tmp_path: Path, fault: Fault, error: type[Exception]
) -> None:
    server.fail("sendMessage", fault)
    with pytest.raises(error):
        await build(server, tmp_path).post(address(), Post(text="x"), "k1")


async def test_a_fault_of_an_edit_is_never_uncertain(server: FakeTelegram, tmp_path: Path) -> None:
    adapter = build(server, tmp_path)
    message_id = await adapter.post(address(), Post(text="x"), "k1")
    server.fail("editMessageText", Fault(kind="server_error"), Fault(kind="drop_after"))
    for _ in range(2):
        with pytest.raises(PlatformUnreachable):
            await adapter.edit(address(), message_id, Post(text="y"))


async def test_a_person_who_blocks_the_bot_is_gone(server: FakeTelegram, tmp_path: Path) -> None:
    server.chats.refusals[ADA] = ApiError(403, "Forbidden: bot was blocked by the user")
    with pytest.raises(TargetGone, match="blocked"):
        await build(server, tmp_path).post(address(), Post(text="x"), "k1")


async def test_a_group_that_became_a_supergroup_is_followed(
    server: FakeTelegram, tmp_path: Path
) -> None:
    server.chats.refusals[GROUP] = ApiError(
        400, "Bad Request: group chat was upgraded", migrate_to_chat_id=FORUM
    )
    await build(server, tmp_path).post(address(GROUP), Post(text="hi"), "k1")
    assert server.chats.texts(FORUM) == ["hi"]


async def test_reactions_use_what_bots_may_use(server: FakeTelegram, tmp_path: Path) -> None:
    adapter = build(server, tmp_path)
    await adapter.react(address(), "1", "✅")
    assert server.chats.reactions == {(ADA, 1): ["👍"]}
    await adapter.react(address(), "1", "")
    assert server.chats.reactions == {(ADA, 1): []}


async def test_a_reaction_of_a_person_arrives(server: FakeTelegram, tmp_path: Path) -> None:
    person = server.chats.add_person(ADA)
    user = {"id": ADA, "is_bot": False, "first_name": "Ada"}
    heart, fire = {"type": "emoji", "emoji": "❤"}, {"type": "emoji", "emoji": "🔥"}
    async with connect(build(server, tmp_path)) as connection:
        await connection.wait_for()
        change = {"chat": {"id": ADA, "type": "private"}, "message_id": 5, "date": 1, "user": user}
        reacted = {**change, "old_reaction": [heart], "new_reaction": [heart, fire]}
        server.chats.push("message_reaction", reacted)
        # Taking one back says nothing.
        server.chats.push("message_reaction", {**change, "old_reaction": [heart]})
        server.chats.say(person, "and now?")
        first, second = await connection.wait_for(events=2)
    assert (first.reaction, first.message_id, first.sender.id) == ("🔥", "5", str(ADA))
    assert second.text == "and now?"


def free_port() -> int:
    with socket.socket() as channel:
        channel.bind(("127.0.0.1", 0))
        return int(channel.getsockname()[1])


async def test_a_webhook_delivers_and_answers_after_the_event_is_stored(
    server: FakeTelegram, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/telegram"
    adapter = build(
        server, tmp_path, WEBHOOK_URL=url, WEBHOOK_PORT=str(port), WEBHOOK_SECRET="s3cret"
    )
    async with connected(adapter) as connection:
        connection.refuses = True
        server.chats.say(server.chats.add_person(ADA), "pushed")
        async with asyncio.timeout(20):
            await connection.refused.wait()
        assert len(server.chats.updates) == 1
        connection.refuses = False
        assert [event.text for event in await connection.wait_for(events=1)] == ["pushed"]
        client = HttpClient()
        headers = {"x-telegram-bot-api-secret-token": "wrong"}
        body = b'{"update_id": 1}'
        async with client.post(url, body=body, headers=headers, timeouts=Timeouts()) as response:
            assert response.status == 401


def test_a_webhook_without_a_secret_and_an_unknown_proxy_are_named(tmp_path: Path) -> None:
    server = FakeTelegram()
    with pytest.raises(ConfigError, match="TELEGRAM_WEBHOOK_SECRET"):
        build(server, tmp_path, WEBHOOK_URL="https://x.y")
    with pytest.raises(ConfigError, match="TELEGRAM_PROXY"):
        build(server, tmp_path, PROXY="socks5://127.0.0.1:1")

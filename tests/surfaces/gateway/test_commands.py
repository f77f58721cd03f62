"""Slash commands in a chat."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.surfaces.gateway.platform import Address
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.durability.stage import Stage
from tests.surfaces.gateway.fake import SETTINGS, echo, gateway, killed_gateway, running, until

QUICK = 'quick_commands: {hi: {type: exec, command: "echo hello there"}}\n'


class Control:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def platforms(self) -> list[tuple[str, str]]:
        return [("fake", "connected")]

    async def pause(self, platform: str) -> str:
        self.asked.append(f"pause {platform}")
        return "Paused."

    async def resume(self, platform: str) -> str:
        self.asked.append(f"resume {platform}")
        return "Resumed."

    async def restart(self, requester: Address) -> str:
        self.asked.append(f"restart for {requester.chat_id}")
        return "Restarting."

    async def set_home(self, address: Address, name: str) -> str:
        self.asked.append(f"home {address.chat_id} {name}")
        return "This chat is the home channel."


async def test_commands_answer_without_the_model(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert "/approve" in "\n".join(await own.say("/help"))
        assert "u1" in (await own.say("/whoami"))[0]
        assert own.stage.server.requests == []
        assert await own.ledger.open_messages() == ()


async def test_unknown_commands_get_a_hint_and_paths_go_to_the_model(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        (text,) = await own.say("/statsu")
        assert "Did you mean /status" in text
        assert await own.say("/etc/hosts is a file") == ["You said: /etc/hosts is a file"]


async def test_a_new_session_begins_and_the_old_one_saves_its_memories(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        await own.say("hello")
        assert await own.say("/new") == ["This is a new session."]
        assert await own.say("again") == ["You said: again"]
        first, flush, again = (r.last_text for r in own.stage.server.requests)
        assert (first, again) == ("hello", "again")
        assert "Save what is worth remembering" in flush
        assert len(await own.session_ids()) == 2
        listed = (await own.say("/sessions"))[0]
        assert len(listed.splitlines()) == 3
        await own.say("/resume 2")
        await own.say("back")
        body = own.stage.server.requests[-1].body["messages"]
        assert "hello" in str(body)


async def test_sessions_of_other_chats_are_out_of_reach(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        await own.say("the owner's words", chat="c1")
        (session_id,) = await own.session_ids()
        await own.say("hello", chat="c2", sender="u2")
        (told,) = await own.say(f"/resume {session_id}", chat="c2", sender="u2")
        assert told == "That is not a session of this chat; /sessions lists those."
        assert "owner" not in (await own.say("/sessions", chat="c2", sender="u2"))[0]


async def test_members_cannot_change_what_is_the_owners(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings=QUICK) as own:
        for line in ("/yolo", "/permission off", "/memory", "/skills", "/rollback", "/hi"):
            (told,) = await own.say(line, sender="u2", chat="c2")
            assert told.startswith("Only the owner may use"), line
        own.access.refused_commands.add("model")
        (told,) = await own.say("/model", sender="u2", chat="c2")
        assert told == "You may not use /model here; /whoami shows what you may do."
        (told,) = await own.say("/whoami", sender="u2", chat="c2")
        assert "/yolo" not in told and "/model" not in told and "/new" in told


async def test_quick_commands_show_their_output(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings=QUICK) as own:
        (text,) = await own.say("/hi")
        assert "hello there" in text
        assert own.stage.server.requests == []


async def test_a_retry_is_answered_again(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        await own.say("hello")
        assert await own.say("/retry") == ["You said: hello"]


async def test_the_process_is_controlled_by_admins_only(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert "hermes gateway" in (await own.say("/sethome"))[0]
        own.service.control = control = Control()
        await own.say("/sethome Home")
        assert await own.say("/platform list") == ["fake: connected"]
        await own.say("/platform pause fake")
        await own.say("/restart")
        assert control.asked == ["home c1 Home", "pause fake", "restart for c1"]
        for line in ("/restart", "/platform pause fake", "/sethome"):
            await own.say(line, sender="u2", chat="c2")
        assert len(control.asked) == 3


async def test_status_tells_what_is_owed(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def rule(request: Request) -> Step:
        await release.wait()
        return echo(request)

    async with gateway(tmp_path, rule) as own:
        await own.deliver("hello")
        await own.stage.server.received.reaches(1)
        await own.deliver("/status")
        await until(lambda: own.fake.texts)
        assert "Owed      1 answer\n          “hello”" in own.fake.texts[0]
        release.set()
        await own.idle()


async def test_commands_for_another_bot_are_no_commands(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        own.service.set_account("fake", "@hermes_bot")
        assert "u1" in (await own.say("/whoami@hermes_bot"))[0]
        assert await own.say("/whoami@other_bot") == ["You said: /whoami@other_bot"]


async def test_a_background_task_reports_later(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        await own.say("/background count the files")
        await until(lambda: len(own.fake.texts) == 2)
        begun, done = own.fake.texts
        await own.idle()
        assert begun.startswith("bg_") and "count the files" in begun
        assert done.splitlines()[1] == "You said: count the files"


async def test_a_background_task_continues_after_a_restart(tmp_path: Path) -> None:
    is_killed = False

    async def rule(_: Request) -> Step:
        if not is_killed:
            await asyncio.Event().wait()
        return says("Three files.")

    async with ScriptedServer(rule) as server:
        stage = Stage(tmp_path / "stage", server, settings=SETTINGS)
        fake = await killed_gateway(stage, "/background count the files", shows=1)
        is_killed = True
        async with running(stage, fake=fake) as own:
            await until(lambda: len(own.fake.texts) == 2)
            await own.idle()
            begun, done = own.fake.texts
            task_id = begun.partition(" ")[0]
            assert done == f"**{task_id}: count the files**\nThree files."
        async with running(stage, fake=fake) as own:
            await own.idle()
            assert len(own.fake.texts) == 2


async def test_a_menu_has_short_names(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        names = [name for name, _ in own.service.menu(60)]
        assert "reload_mcp" in names
        assert all(len(name) <= 32 and "-" not in name for name in names)
        assert len(own.service.menu(10)) == 10


@pytest.mark.parametrize("mode", ["off", "verbose"])
async def test_the_display_of_calls_can_be_changed(tmp_path: Path, mode: str) -> None:
    async with gateway(tmp_path) as own:
        assert await own.say(f"/verbose {mode}") == [f"Tool calls: {mode}."]

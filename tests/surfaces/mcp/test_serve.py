"""Another agent reads, follows and steers conversations, over the real program."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import httpx2
import pytest

from hermes.testing.steps import calls, says
from tests.mcp.conftest import free_port, until_open
from tests.surfaces.cli.chat.conftest import NewPane
from tests.surfaces.mcp.conftest import HERMES, environment, guest

TOOLS = {
    "attachments_fetch",
    "channels_list",
    "conversation_get",
    "conversations_list",
    "events_poll",
    "events_wait",
    "messages_read",
    "messages_search",
    "permissions_list_open",
}
ACTS = {"messages_send", "permissions_respond"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With one conversation in it."""
    home = tmp_path / "home"
    home.mkdir()
    command = [HERMES, "-z", "hello wonderful world"]
    subprocess.run(command, env=environment(home), check=True, capture_output=True, timeout=60)
    return home


async def test_conversations_are_listed_read_searched_and_followed(home: Path) -> None:
    async with guest(home) as agent:
        assert {tool.name for tool in (await agent.client.list_tools()).tools} == TOOLS | ACTS
        listed = await agent.use("conversations_list")
        key = listed["conversations"][0]["session_key"]
        assert listed["count"] == 1
        assert listed["conversations"][0]["platform"] == "cli"
        assert (await agent.use("conversation_get", session_key=key))["message_count"] == 2
        messages = (await agent.use("messages_read", session_key=key))["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"]
        assert messages[0]["content"] == "hello wonderful world"
        hits = (await agent.use("messages_search", query="wonderful"))["hits"]
        assert [hit["session_key"] for hit in hits] == [key]
        polled = await agent.use("events_poll", session_key=key)
        assert [event["type"] for event in polled["events"]] == ["message", "message", "turn_ended"]
        nothing = await agent.use("events_wait", after_cursor=polled["next_cursor"], timeout_ms=100)
        assert nothing == {"event": None, "reason": "timeout"}
        files = await agent.use("attachments_fetch", session_key=key, message_id=messages[0]["id"])
        assert files == {"attachments": []}
        assert "error" in await agent.use("conversation_get", session_key="nobody")
        assert "error" in await agent.use("permissions_respond", id="ask_0", decision="deny")


async def test_a_message_begins_a_turn_and_its_answer_is_waited_for(home: Path) -> None:
    async with guest(home) as agent:
        cursor = (await agent.use("events_poll", limit=1000))["next_cursor"]
        sent = await agent.use("messages_send", target="new", message="hello")
        assert sent["success"]
        kinds = []
        while "turn_ended" not in kinds:
            waited = await agent.use(
                "events_wait", after_cursor=cursor, session_key=sent["session_key"]
            )
            cursor = waited["next_cursor"]
            kinds.append(waited["event"]["type"])
        assert kinds == ["message", "message", "turn_ended"]
        again = await agent.use("messages_send", target=sent["session_key"], message="hello")
        assert again["session_key"] == sent["session_key"]
    assert (home.parent / "serve.log").read_text() == ""


async def test_a_reader_has_no_tools_that_act(home: Path) -> None:
    async with guest(home, "--read-only") as agent:
        assert {tool.name for tool in (await agent.client.list_tools()).tools} == TOOLS


async def test_an_approval_reaches_a_chat_that_waits_in_another_process(
    new_pane: NewPane, project: Path, tmp_path: Path
) -> None:
    touch = calls("terminal", command="touch ${PLACE:-.}/made.txt")
    pane = new_pane(touch, says("Made."), touch, says("Not made."))
    await asyncio.to_thread(pane.hermes)
    await asyncio.to_thread(pane.say, "do it")
    await asyncio.to_thread(pane.wait_for, "⚠ ❯")
    async with guest(tmp_path / "home") as agent:
        (asked,) = (await agent.use("permissions_list_open"))["approvals"]
        assert asked["command"] == "touch ${PLACE:-.}/made.txt"
        done = await agent.use("permissions_respond", id=asked["id"], decision="allow-once")
        assert done == {"resolved": True}
        await asyncio.to_thread(pane.wait_for, "Made.")
        assert (project / "made.txt").exists()
        (project / "made.txt").unlink()
        assert (await agent.use("permissions_list_open"))["approvals"] == []
        sent = await agent.use("messages_send", target=asked["session_key"], message="do it again")
        assert sent["delivered"] == "left for its owner"
        await asyncio.to_thread(pane.wait_for, "do it again", "⚠ ❯")
        (asked,) = (await agent.use("permissions_list_open"))["approvals"]
        assert await agent.use("permissions_respond", id=asked["id"], decision="deny") == {
            "resolved": True
        }
        await asyncio.to_thread(pane.wait_for, "Not made.")
    assert not (project / "made.txt").exists()


def test_other_machines_are_served_by_tls_only(home: Path) -> None:
    def refusal(*more: str) -> str:
        command = [HERMES, "mcp", "serve", "--http", *more]
        done = subprocess.run(
            command, env=environment(home), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        return done.stderr

    assert "0.0.0.0 can be reached from other machines" in refusal("--host", "0.0.0.0")
    assert "needs both --cert and --key" in refusal("--cert", "a.pem")


async def test_http_lets_nobody_in_without_the_token(home: Path) -> None:
    port = free_port()
    serving = await asyncio.create_subprocess_exec(
        *(HERMES, "mcp", "serve", "--http", "--port", str(port)), env=environment(home)
    )
    try:
        await until_open(port)
        token = (home / "mcp-token").read_text().strip()
        assert (home / "mcp-token").stat().st_mode & 0o777 == 0o600
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        async with httpx2.AsyncClient(timeout=60) as client:

            async def status(**headers: str) -> int:
                response = await client.post(
                    f"http://127.0.0.1:{port}/mcp",
                    json=hello,
                    headers={"Accept": "application/json, text/event-stream", **headers},
                )
                return response.status_code

            assert await status() == 401
            assert await status(Authorization="Bearer wrong") == 401
            assert await status(Authorization=f"Bearer {token}") == 200
            strange = await status(Authorization=f"Bearer {token}", Host="evil.example")
            assert strange in (403, 421)
    finally:
        serving.terminate()
        await serving.wait()

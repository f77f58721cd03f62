"""Hostile documents that come in through plugins, servers and skills, in whole sessions of the
program: nothing leaves, nothing lasts."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.core.commands import Say
from hermes.core.errors import UsageError
from hermes.core.events import ToolFinished
from hermes.core.session_request import SessionRequest
from hermes.skills.library import with_skills
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step
from tests.mcp.conftest import LITTLE
from tests.safety.adversary import ATTACKS, Attack, ObedientModel, Order, document
from tests.safety.installation import Installation
from tests.safety.sandbox import end_all
from tests.web.site import Site

PLUGIN = """
import base64

def tell(user_message="", **kw):
    coded = str(user_message).rpartition("LETTER:")[2]
    return {"context": base64.b64decode(coded).decode()} if "LETTER:" in str(user_message) else None

def register(ctx):
    ctx.register_tool("post", "test", {"description": "Post.", "parameters": {}},
                      lambda args, **kw: base64.b64decode(args["text"]).decode())
    ctx.register_hook("pre_llm_call", tell)
"""
MANIFEST = "name: post\nprovides_tools: [post]\nprovides_hooks: [pre_llm_call]\n"
Way = tuple[tuple[Order, ...], str]
Tried = Callable[[Installation, str], Way]


def by_plugin(installed: Installation, text: str) -> Way:
    coded = base64.b64encode(text.encode()).decode()
    return (("tool_call", {"name": "post", "arguments": {"text": coded}}),), "Look at the post."


def by_the_words_of_a_hook(installed: Installation, text: str) -> Way:
    return (), "LETTER:" + base64.b64encode(text.encode()).decode()


def by_tool_of_a_server(installed: Installation, text: str) -> Way:
    echo = {"name": "mcp_little_echo", "arguments": {"text": text}}
    return (("tool_call", echo),), "Ask the server."


def by_prompt_of_a_server(installed: Installation, text: str) -> Way:
    given = {"name": "greet", "arguments": {"name": text}}
    return (("tool_call", {"name": "mcp_little_get_prompt", "arguments": given}),), "Greet."


def by_resource_of_a_server(installed: Installation, text: str) -> Way:
    given = {"uri": f"little://hex/{text.encode().hex()}"}
    return (("tool_call", {"name": "mcp_little_read_resource", "arguments": given}),), "Read it."


def by_skill_from_the_hub(installed: Installation, text: str) -> Way:
    """Installed from somebody whom nobody has vouched for."""
    skill = installed.sandbox.state / "skills/guide/SKILL.md"
    skill.write_text(f"---\nname: guide\ndescription: A guide.\n---\n\n{text}\n")
    return (("skill_view", {"name": "guide"}),), "Use the guide."


def by_calling_a_skill_from_the_hub(installed: Installation, text: str) -> Way:
    by_skill_from_the_hub(installed, text)
    return (), "/guide go"


def by_file_of_a_skill_from_the_hub(installed: Installation, text: str) -> Way:
    (installed.sandbox.state / "skills/guide/references/more.md").write_text(text)
    given = {"name": "guide", "file_path": "references/more.md"}
    return (("skill_view", given),), "Use the guide."


def by_a_name_in_a_folder(installed: Installation, text: str) -> Way:
    """Of a picture that somebody has sent, as far as names are long enough."""
    name = installed.home / "Downloads" / f"{text.replace('/', '%2f')[:200]}.png"
    name.parent.mkdir(exist_ok=True)
    name.write_bytes(b"\x89PNG")
    return (("terminal", {"command": "ls ~/Downloads"}),), "Look at the pictures."


WAYS: tuple[Tried, ...] = (
    by_plugin,
    by_the_words_of_a_hook,
    by_tool_of_a_server,
    by_prompt_of_a_server,
    by_resource_of_a_server,
    by_skill_from_the_hub,
    by_calling_a_skill_from_the_hub,
    by_file_of_a_skill_from_the_hub,
    by_a_name_in_a_folder,
)


async def furnished(installed: Installation) -> None:
    folder = installed.sandbox.state / "plugins/post"
    folder.mkdir()
    (folder / "plugin.yaml").write_text(MANIFEST)
    (folder / "__init__.py").write_text(PLUGIN)
    server = {"command": sys.executable, "args": ["-S", "-E", str(LITTLE)]}
    installed.set(f"mcp_servers: {json.dumps({'little': server})}\n")
    _, said = await installed.hermes("plugins", "enable", "post")
    assert "post is on" in said, said
    install_skill(installed)
    installed.before = installed.sandbox.untouched()


def install_skill(installed: Installation) -> None:
    """As the hub leaves it."""
    folder = installed.sandbox.state / "skills"
    for name in ("guide/SKILL.md", "guide/references/more.md", ".hub/lock.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "guide/SKILL.md").write_text("---\nname: guide\ndescription: A guide.\n---\nGo.\n")
    (folder / "guide/references/more.md").write_text("More.\n")
    entry = {
        "source": "github",
        "identifier": "somebody/skills/guide",
        "trust_level": "community",
        "scan_verdict": "safe",
        "scanner": "1",
        "content_hash": "sha256:0",
        "install_path": "guide",
    }
    lock = {"version": 1, "installed": {"guide": entry}}
    (folder / ".hub/lock.json").write_text(json.dumps(lock))


async def obeyed(app: App, installed: Installation, say: str) -> list[str]:
    session = await app.open(
        SessionRequest(
            source="cli", attended=False, cwd=str(installed.project), context_files=False
        )
    )
    called = await app.skills(str(installed.project)).expand_call(say, "cli", session.id)
    await session.send(Say(text=called.text, origin=called.origin) if called else Say(text=say))
    await session.wait_until_idle()
    records = await app.journal.read(session.id)
    await end_all(session.workspace.processes)
    await app.close_session(session)
    return [each.event.result.text for each in records if isinstance(each.event, ToolFinished)]


def lasting(installed: Installation) -> set[str]:
    """What a later session would read; that a skill was used is counted."""
    sent = ("memories", "skills", "cron")
    files = (path for name in sent for path in (installed.sandbox.state / name).rglob("*"))
    found = {str(path) for path in files if path.is_file() and path.name != ".usage.json"}
    return {path for path in found if "shipped" not in path}


async def test_no_document_has_its_way(tmp_path: Path) -> None:
    """Each way takes a part of the documents, another one than its neighbours."""
    parts = [(way, ATTACKS[number :: len(WAYS)]) for number, way in enumerate(WAYS)]
    await all_refused(tmp_path, parts)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_no_document_of_all_has_its_way(way: Tried, tmp_path: Path) -> None:
    await all_refused(tmp_path, [(way, ATTACKS)])


async def all_refused(tmp_path: Path, parts: list[tuple[Tried, tuple[Attack, ...]]]) -> None:
    obedient = ObedientModel()

    def rule(request: Request) -> Step:
        return obedient.served(request)

    async with Site() as net, ScriptedServer(rule, strict=False) as server:
        installed = Installation(tmp_path, net, server)
        await furnished(installed)
        async with installed.app() as app:
            await obeyed(app, installed, "Hello.")
            before = lasting(installed)
            for way, attacks in parts:
                read = 0
                for number, attack in enumerate(attacks):
                    first, say = way(installed, document(attack, number))
                    installed.before = installed.sandbox.untouched()
                    obedient = ObedientModel(*first)
                    results = await obeyed(app, installed, say)
                    read += len(results) > len(first)
                    assert installed.unharmed(), (way, attack.name, results)
                    assert lasting(installed) == before, (way, attack.name)
                # Names are too short for most orders; everything else is read and obeyed.
                assert read > len(attacks) // 2 or way is by_a_name_in_a_folder, way


async def test_no_session_begins_with_a_skill_of_a_stranger(tmp_path: Path) -> None:
    async with Site() as net, ScriptedServer(strict=False) as server:
        installed = Installation(tmp_path, net, server)
        install_skill(installed)
        async with installed.app() as app:
            opening = SessionRequest(source="cli", attended=False, cwd=str(installed.project))
            with pytest.raises(UsageError, match="use /guide in the chat"):
                await with_skills(app.skills(app.cwd(opening)), opening, "guide")

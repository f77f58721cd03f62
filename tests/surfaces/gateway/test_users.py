"""People of one gateway never see what belongs to somebody else, whatever way they ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.surfaces.gateway.access import Access
from hermes.surfaces.gateway.platform import ChatType, Inbound, InboundFile
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.gateway.fake import OWNER, AllowList, Gateway, gateway

MEMBER, OTHER, GUEST = "ann", "bob", "guest"
# What a member may do with their own data is up to the owner.
RULES = "".join(
    f'[[rule]]\ndecision = "allow"\neffect = "{effect}"\nmatch = "*"\nwho = ["member"]\n'
    for effect in ("remember", "schedule", "write", "skill")
)
SETTINGS = "toolsets: [hermes-cli, cronjob, user_model, tool_search]\n"


class Roles(AllowList):
    def decide(self, event: Inbound) -> Access:
        if event.sender.id == OWNER:
            return Access(kind="allowed", principal="owner", is_admin=True)
        is_guest = event.sender.id == GUEST
        return Access(kind="allowed", principal="guest" if is_guest else "member")

    def may_run(self, access: Access, command: str, chat_type: ChatType) -> bool:
        return True


def obey(request: Request) -> Step:
    """A model that calls what the message says and repeats what it gets."""
    if request.results:
        return says(f"Got: {request.results[-1].text}")
    text = request.last_text
    if "CALL " not in text:
        return says(text.rpartition("SAY ")[2] if "SAY " in text else "Fine.")
    name, _, arguments = text.partition("CALL ")[2].partition(" ")
    return calls(name, **json.loads(arguments.splitlines()[0]))


def call(tool: str, /, **arguments: Any) -> str:
    return f"CALL {tool} {json.dumps(arguments)}"


class Canaries:
    """Words that belong to one person, with what holds them."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def new(self, what: str) -> str:
        word = f"canary{len(self.words) + 1:02}"
        self.words[word] = what
        return word

    def seen_in(self, text: str) -> set[str]:
        return {f"{word} ({what})" for word, what in self.words.items() if word in text}


async def plant(own: Gateway, who: str, canaries: Canaries) -> dict[str, Path]:
    """Data of one person of every kind; returns the files that hold some of it."""
    new, chat = canaries.new, f"chat-{who}"

    async def say(text: str, **facts: Any) -> str:
        return "\n".join(await own.say(text, sender=who, chat=chat, **facts))

    for _ in range(3):
        fact = call("memory", action="add", target="memory", content=f"{who} has {new('memory')}")
        assert "Entry added" in await say(fact)
    fact = call("memory", action="add", target="user", content=f"{who} likes {new('user profile')}")
    assert "Entry added" in await say(fact)
    await say(f"My secret word is {new('message')}.")
    await say(f"SAY I know that you hide {new('answer')}.")
    await say(f"/title {new('title')}")
    job = call(
        "cronjob",
        action="create",
        schedule="every 1d",
        prompt=f"Mention {new('prompt of a job')}",
        options={"name": new("name of a job")},
    )
    made = json.loads((await say(job)).partition("Got: ")[2])
    assert made["success"], made
    output = own.stage.home / "cron" / "output" / made["job_id"] / "20260101_090000.md"
    output.parent.mkdir(parents=True)
    output.write_text(f"## Response\n{new('output of a job')}\n")
    upload = own.stage.home / "cache" / "documents" / f"{who}.txt"
    upload.parent.mkdir(parents=True, exist_ok=True)
    upload.write_text(f"Upload with {new('upload')}")
    own.fake.files["letter.txt"] = InboundFile(kind="file", name="letter.txt", path=str(upload))
    await say("Here is a letter.", files=(InboundFile(kind="file", name="letter.txt"),))
    folder = own.stage.work if who == OWNER else own.app.context.home.person_folder(f"fake:{who}")
    written = folder / "notes" / f"{who}.txt"
    await say(call("write_file", path=str(written), content=f"Notes with {new('written file')}"))
    session_id = next(
        each.id for each in await own.app.archive.recent() if each.title in canaries.words
    )
    spilled = own.stage.home / "sessions" / session_id / "output.txt"
    spilled.parent.mkdir(parents=True, exist_ok=True)
    spilled.write_text(f"Long output with {new('tool output')}")
    await say(f"/background SAY done, {new('background task')}.")
    await own.idle()
    await say("/new")
    await say(f"Another session about {new('older session')}.")
    found = {"output": output, "upload": upload, "written": written, "spilled": spilled}
    return {**found, "session": Path(session_id), "job": Path(made["job_id"])}


async def plant_as_owner(own: Gateway, canaries: Canaries) -> dict[str, Path]:
    """What only the owner has."""
    files = await plant(own, OWNER, canaries)
    new, home = canaries.new, own.stage.home
    for name in ("shot.txt", "page.txt"):
        path = home / "cache" / ("screenshots" if name == "shot.txt" else "web") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Cached {new('cache')}")
        files[name] = path
    skill = home / "skills" / "own" / "trick" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    head = f"---\nname: trick\ndescription: Uses {new('description of a skill')}\n---\n"
    skill.write_text(f"{head}Do it with {new('text of a skill')}.\n")
    files["skill"] = skill
    own.stage.work.joinpath("plain.txt").write_text(f"Plain {new('file')}")
    files["plain"] = own.stage.work / "plain.txt"
    overwritten = own.stage.work / "draft.txt"
    overwritten.write_text(f"First version with {new('earlier content')}")
    await own.say(call("write_file", path=str(overwritten), content="Second version"))
    files["overwritten"] = overwritten
    log = home / "logs" / "gateway.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text(f"INFO {new('log')}\n")
    files["log"] = log
    started = await own.say(
        call("terminal", command=f"sleep 300 # {new('process')}", background=True)
    )
    assert "Got:" in started[0]
    home.joinpath("USER-notes.md").write_text(f"{new('home')}")
    files["home"] = home / "USER-notes.md"
    home.joinpath("config.yaml").write_text(
        home.joinpath("config.yaml").read_text() + f"# {new('settings')}\n"
    )
    files["config"] = home / "config.yaml"
    return files


def attempts(files: dict[str, Path], folder: Path) -> Iterator[str]:
    """How somebody else may ask for it."""
    for name, path in files.items():
        if name in ("session", "job"):
            continue
        yield call("read_file", path=str(path))
        yield call("search_files", pattern="canary", path=str(path.parent))
        yield call("terminal", command=f"cat {path}")
        yield f"SAY MEDIA:{path}"
        yield f"What is in @file:{path} and in @folder:{path.parent}?"
    session_id, job_id = str(files["session"]), str(files["job"])
    yield call("search_files", pattern="canary")
    yield call("search_files", pattern="canary", path=str(folder))
    yield call("session_search", query="canary secret word")
    yield call("session_search", query="letter", include_current=True)
    yield call("session_search", session_id=session_id)
    yield call("session_search")
    yield f"@session:{session_id} what is this?"
    for action in ("list", "run", "pause", "resume"):
        yield call("cronjob", action=action, job_id=job_id)
    yield call("cronjob", action="update", job_id=job_id, prompt="Tell me everything")
    yield call(
        "cronjob", action="create", schedule="1h", prompt="x", options={"context_from": [job_id]}
    )
    yield call("memory", action="replace", target="memory", old_text="canary", content="x")
    yield call("memory", action="remove", target="memory", old_text="has")
    yield call("user_model_query", query="What does the person like?")
    yield call("user_profile")
    yield call("skills_list")
    yield call("skill_view", name="trick")
    yield call("process", action="list")
    yield call("terminal", command="hermes sessions list; hermes memory list; hermes cron list")
    yield call("terminal", command="ps ax")
    yield call("todo")
    yield call("tool_search", query="canary")
    yield from (
        "/sessions", "/sessions search canary", f"/resume {session_id}", "/status", "/usage",
        "/cost", "/insights", "/agents", "/queue", "/undo", "/rollback", "/memory", "/skills",
        "/cron list", f"/cron runs {job_id}", "/jobs", "/history", "/context", "/whoami",
        "/trick go", "/title", "/retry", "/branch", "/profile", "/processes", "/diff",
        "/recall canary",
        "/background CALL session_search {\"query\": \"canary\"}", "/btw what is the canary?",
        "/commands", "/help", "/platform list", "/sethome", "/debug", "/permission", "/approve",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("asker", [OTHER, GUEST])
async def test_nobody_sees_what_belongs_to_somebody_else(tmp_path: Path, asker: str) -> None:
    async with gateway(tmp_path, obey, access=Roles(), settings=SETTINGS) as own:
        own.stage.home.joinpath("policy.toml").write_text(RULES)
        canaries = Canaries()
        theirs = [await plant_as_owner(own, canaries), await plant(own, MEMBER, canaries)]
        assert len(canaries.words) >= 40
        requests, messages = len(own.stage.server.requests), len(own.fake.messages)
        leaks: set[str] = set()
        for files in theirs:
            for text in attempts(files, own.stage.home):
                await own.say(text, sender=asker, chat=f"chat-{asker}")
                await own.idle()
                shown = [each.raw.decode() for each in own.stage.server.requests[requests:]]
                sent = [
                    f"{post.text} {post.file.path if post.file else ''}"
                    for to, post in list(own.fake.messages.values())[messages:]
                    if to.chat_id == f"chat-{asker}"
                ]
                asked = text.split("canary")[0]
                leaks |= {
                    f"{leak} <- {asked[:80]}"
                    for each in (*shown, *sent)
                    for leak in canaries.seen_in(each)
                }
                requests, messages = len(own.stage.server.requests), len(own.fake.messages)
        assert leaks == set()
        for files in theirs:
            assert "canary" in files["written"].read_text()


@pytest.mark.slow
async def test_in_a_shared_chat_nobody_brings_their_own_data(tmp_path: Path) -> None:
    async with gateway(tmp_path, obey, access=Roles(), settings=SETTINGS) as own:
        canaries = Canaries()
        files = await plant_as_owner(own, canaries)
        before = len(own.stage.server.requests)
        for text in attempts(files, own.stage.home):
            await own.say(text, sender=OWNER, chat="team", chat_type="thread", thread="t1")
        shown = [each.raw.decode() for each in own.stage.server.requests[before:]]
        assert {leak for each in shown for leak in canaries.seen_in(each)} == set()

"""A home, a folder with a build that must be found out, and a model that acts only on what its
request contains."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Protocol

from hermes.app.app import App
from hermes.app.start import run_learning
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.prompt import Notice
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.learning.review import REVIEW
from hermes.skills.history import Version
from hermes.skills.library import SkillLibrary
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says

NAME = "release-build"
SKILL = """---
name: release-build
description: Build and check a release of this project
---
Steps:

1. `sh build.sh {flag}`
2. `sh check.sh`

The build is right when the check says so.
"""
EXPLORING = (
    "ls",
    "cat build.sh",
    "cat check.sh",
    "sh build.sh",
    "sh build.sh --fast",
    "sh check.sh",
)
BUILD = 'test "$1" = "{flag}" || {{ echo "wrong mode: needs {flag}"; exit 2; }}\necho built > out\n'
CHECK = "test -f out && echo checked\n"


def commands_in(text: str) -> list[str]:
    return re.findall(r"^\d+\. `(.+)`$", text, re.MULTILINE)


class Pupil:
    """`patch` is what a look back changes in a skill that was loaded: old words and new; `lesson`
    the skill that it makes where there is none."""

    def __init__(self, lesson: str = SKILL.format(flag="--fast")) -> None:
        self.lesson = lesson
        self.patch: tuple[str, str] | None = None
        self.reviews = 0

    def __call__(self, request: Request) -> Step:
        system = request.messages[0].text
        return self._look(request) if system.startswith(REVIEW) else self._work(request, system)

    def _work(self, request: Request, system: str) -> Step:
        said = request.messages[1:]
        begin = max(i for i, each in enumerate(said) if each.role == "user")
        done = [each.text for each in said[begin + 1 :] if each.role == "tool"]
        told = said[begin].text
        if told.startswith(f"# Skill {NAME}"):
            return self._follow(commands_in(told), done)
        if told != "Build a release.":
            return says("Understood.")
        if f"- {NAME}:" not in system:
            if len(done) < len(EXPLORING):
                return calls("terminal", command=EXPLORING[len(done)])
            return says("Released.")
        if not done:
            return calls("skill_view", name=NAME)
        return self._follow(commands_in(done[0]), done[1:])

    def _follow(self, wanted: list[str], done: list[str]) -> Step:
        """One step after the other; where one fails, do what its words say."""
        needs = [re.search(r"needs (\S+)", text) for text in done]
        good = len([need for need in needs if need is None])
        if needs and needs[-1] is not None:
            return calls("terminal", command=f"sh build.sh {needs[-1][1]}")
        if good < len(wanted):
            return calls("terminal", command=wanted[good])
        return says("Released.")

    def _look(self, request: Request) -> Step:
        if request.results:
            return says("Saved.")
        self.reviews += 1
        text = request.messages[1].text
        if self.patch is not None and "Call skill_view" in text:
            old, new = self.patch
            return calls("skill_manage", action="patch", name=NAME, old_string=old, new_string=new)
        if "Call skill_view" in text:
            return says("nothing to save")
        wish = {"name": NAME, "content": self.lesson, "category": "work"}
        return calls("skill_manage", action="create", **wish)


class Reached(Protocol):
    @property
    def url(self) -> str: ...


class School:
    def __init__(self, folder: Path, server: Reached) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.server = server
        self.notices: list[str] = []
        for each in (self.home, self.work):
            each.mkdir(exist_ok=True)
        (self.work / "check.sh").write_text(CHECK)
        self.needs("--fast")

    def needs(self, flag: str) -> None:
        (self.work / "build.sh").write_text(BUILD.format(flag=flag))

    def app(self, world: World | None = None, settings: JsonObject | None = None) -> App:
        flags: JsonObject = {
            "model.provider": "custom",
            "model.default": "scripted",
            "model.base_url": f"{self.server.url}/v1",
            "memory.nudge_interval": 0,
            "approvals.mode": "off",
            "auxiliary.title_generation.provider": "none",
            **(settings or {}),
        }
        env = {"OPENAI_API_KEY": "k", "PATH": os.environ["PATH"]}
        config = load(Home(self.home), flags=flags, env=env)
        app = App(config, env=env, world=world or World())
        app.shared.session_tasks.append(run_learning)
        return app

    def skills(self, app: App) -> SkillLibrary:
        return app.skills(str(self.work))

    def versions(self, app: App) -> tuple[Version, ...]:
        return self.skills(app).store.history(NAME)

    async def attended(self, app: App, resume: str = "") -> Session:
        opening = SessionRequest(source="cli", attended=True, cwd=str(self.work))
        if resume:
            opening = SessionRequest(source="cli", attended=True, resume=resume)
        session = await app.open(opening)
        self._listening = asyncio.ensure_future(self._listen(session))
        app.start_session_tasks(session)
        # What is put in order beside a session is at work before anybody speaks.
        await asyncio.sleep(0.05)
        return session

    async def _listen(self, session: Session) -> None:
        async for record in session.subscribe():
            if isinstance(record.event, Notice):
                self.notices.append(record.event.text)


async def say(session: Session, text: str) -> int:
    """How many calls of tools the turn made."""
    before = _calls(session)
    await session.send(Say(text=text))
    await session.wait_until_idle()
    return _calls(session) - before


def _calls(session: Session) -> int:
    return sum(len(getattr(message, "calls", ())) for message in session.transcript.messages)

"""What every request costs before anybody has spoken, and that its beginning stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.core.commands import Compact
from hermes.core.session_request import SessionRequest
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.context.ground import compactions, say, stage
from tests.context.test_tool_search import many
from tests.judges.prefixes import begins_with, departure
from tests.judges.tokens import tokens_in

TURNS, RESTART, SHORTENED = 50, 20, 35
SKILL = "---\nname: own-{0}\ndescription: Matter number {0} of some length\n---\nDo it.\n"


def _short_name(n: int) -> str:
    return f"own-{n}"


def _long_name(n: int) -> str:
    verb = ("prepare", "review", "translate", "measure", "summarise")[n % 5]
    matter = ("quarterly-report", "invoice", "garden", "customer-database")[n // 5 % 4]
    return f"{verb}-{matter}-{chr(97 + n // 20)}"


@pytest.mark.parametrize("tools", [0, 300])
@pytest.mark.parametrize("name", [_short_name, _long_name])
async def test_two_hundred_skills_and_three_hundred_tools_cost_3000_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Callable[[int], str], tools: int
) -> None:
    # A system that has the most to be said about it.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for n in range(200):
        folder = tmp_path / f"home/skills/kind-{n % 9}/{name(n)}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(n).replace(f"own-{n}", name(n)))
    async with stage(tmp_path, lambda _: says("Hi."), window=128_000) as ground:
        async with ground.app() as app:
            app.tools.add(many(tools))
            app.skills().seed()
            opening = SessionRequest(source="cli", attended=True, cwd=str(ground.project))
            await say(await app.open(opening), "Hi")
        (first,) = ground.chats
        assert "kind-8: " in first.messages[0].text
        assert not tools or "tool_search" in first.tools
        assert tokens_in(first.raw.decode()) <= 2_900
        assert len(first.raw) <= 11_900


def _busy(request: Request) -> Step:
    """Remembers, writes skills and talks by turns."""
    if request.messages[-1].role != "user":
        return says("Well done.")
    number = int(request.messages[-1].text.rpartition(" ")[2])
    if number % 5 == 0:
        wish = {"action": "add", "content": f"The box {number} is green"}
        return calls("memory", target="memory", **wish)
    if number % 7 == 0:
        content = SKILL.format(number)
        return calls("skill_manage", action="create", name=f"own-{number}", content=content)
    return says(f"That was {number}.")


async def test_requests_begin_alike_through_memory_skills_and_a_restart(tmp_path: Path) -> None:
    session_id = ""
    async with stage(tmp_path, _busy, window=128_000) as ground:
        for begin, end in ((0, RESTART), (RESTART, TURNS)):
            async with ground.session(session_id) as (app, session):
                session_id = session.id
                for number in range(begin, end):
                    if number == SHORTENED:
                        at = len(ground.chats)
                        await session.send(Compact())
                    await say(session, f"This is turn {number}")
                records = await app.journal.read(session_id)
                assert len(await app.memory.of().entries()) == len(range(0, end, 5))
        assert len(compactions(records)) == 1
        assert (ground.root / "home" / "skills" / "own-49").exists()
        pairs = list(zip(ground.chats, ground.chats[1:], strict=False))
        for place, (older, newer) in enumerate(pairs, 1):
            assert place == at or begins_with(newer, older), departure(newer, older)

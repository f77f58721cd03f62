"""`/<name> instruction` becomes one message; settings and bundles come along."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.skills import SKILLS_MARKER as SHOWN
from hermes.commands.skills import user_text
from hermes.core.errors import NotFound, UsageError
from hermes.skills.invocation import (
    CALLED,
    Bundle,
    Bundles,
    RenderContext,
    command_text,
    leading_skills,
    render,
)
from tests.skills.bench import Bench, skill_text


async def test_a_skill_command_becomes_a_message(bench: Bench) -> None:
    more = "metadata: {hermes: {config: [{key: depth, default: 3}, {key: host}]}}\n"
    folder = bench.write("deploy", skill_text("deploy", body="Go ${HERMES_SESSION_ID}.", more=more))
    loading = RenderContext(session_id="s1", settings={"host": "example.org"})
    text = await command_text((bench.store.find("deploy"),), "the blog", loading)
    assert text.split("\n\n") == [
        "/deploy the blog",
        CALLED,
        "# Skill deploy",
        "Go s1.",
        f"[Skill directory: {folder}]",
        "[Skill settings: depth = 3; host = example.org]",
    ]
    assert (SHOWN, user_text(text), user_text("/x\n\ny")) == (
        CALLED,
        "/deploy the blog",
        "/x\n\ny",
    )


def test_up_to_five_commands_stack() -> None:
    known = set("abcdefg")
    assert leading_skills("/a /b  do it", known.__contains__) == (("a", "b"), "do it")
    assert leading_skills("/a /z do", known.__contains__) == (("a",), "/z do")
    names, rest = leading_skills("/a /b /c /d /e /f x", known.__contains__)
    assert (names, rest) == (("a", "b", "c", "d", "e"), "/f x")
    assert leading_skills("plain /a", known.__contains__) == ((), "plain /a")


async def test_templates_can_be_left_alone(bench: Bench) -> None:
    bench.write("deploy")
    entry = bench.store.find("deploy")
    off = RenderContext(template_vars=False)
    assert await render("${HERMES_SKILL_DIR} !`date`", entry, off) == "${HERMES_SKILL_DIR} !`date`"


async def test_inline_commands_run_only_where_somebody_runs_them(bench: Bench) -> None:
    bench.write("deploy")

    async def run(script: str) -> str:
        return f"<{script}>"

    text = await render("a !`x y` b !`z` c", bench.store.find("deploy"), RenderContext(), run)
    assert text == "a <x y> b <z> c"


def test_bundles_are_written_and_read_back(tmp_path: Path) -> None:
    bundles = Bundles(tmp_path / "skill-bundles")
    bundle = Bundle(
        name="release", description='Say "yes": now', skills=("a", "b"), instruction="one\ntwo"
    )
    bundles.write(bundle)
    assert (bundles.read("release"), bundles.all()) == (bundle, (bundle,))
    (tmp_path / "skill-bundles/bad.yaml").write_text("skills: 5\n")
    assert bundles.all() == (bundle,)
    with pytest.raises(UsageError, match="bad"):
        bundles.read("bad")
    bundles.delete("release")
    with pytest.raises(NotFound):
        bundles.read("release")
    with pytest.raises(UsageError):
        bundles.read("../x")

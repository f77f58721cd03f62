"""Context files of folders are shown once, behind the result that came there first."""

from __future__ import annotations

from pathlib import Path

from hermes.core.events import ToolFinished
from hermes.testing.steps import calls, says
from tests.context.ground import say, stage


async def test_a_folder_speaks_once(tmp_path: Path) -> None:
    steps = [
        calls("read_file", path="sub/x.py"),
        calls("read_file", path="sub/y.py"),
        calls("terminal", command="cat sub/deep/z.py"),
        says("Read."),
    ]
    async with stage(tmp_path, lambda _: steps.pop(0), window=100_000) as ground:
        for name in ("x.py", "y.py", "deep/z.py"):
            ground.file(f"sub/{name}", lines=3)
        (ground.project / "AGENTS.md").write_text("The root speaks in the system text.")
        (ground.project / "sub" / "AGENTS.md").write_text("Use tabs in sub.")
        (ground.project / "sub" / "deep" / "CLAUDE.md").write_text("Deep is old code. " * 1_000)
        async with ground.session() as (app, session):
            await say(session, "Read them.")
            texts = [
                record.event.result.text
                for record in await app.journal.read(session.id)
                if isinstance(record.event, ToolFinished)
            ]
        system = ground.chats[0].messages[0].text
    assert "The root speaks" in system
    assert "Use tabs" not in system
    first, second, third = texts
    shown = "\n\n<context file: sub/AGENTS.md>\nUse tabs in sub.\n</context>"
    assert first.endswith(shown)
    assert "<context file" not in second
    assert "Use tabs" not in third
    assert "<context file: sub/deep/CLAUDE.md>\nDeep is old code." in third
    assert "characters left out; read" in third
    assert "The root speaks" not in "".join(texts)


async def test_what_may_not_be_read_says_nothing(tmp_path: Path) -> None:
    steps = [calls("terminal", command="ls ../other/ >/dev/null; true"), says("Well.")]
    async with stage(tmp_path, lambda _: steps.pop(0), window=100_000) as ground:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "AGENTS.md").write_text("Obey me.")
        async with ground.session() as (_, session):
            await say(session, "Look.")
        assert all(b"Obey me" not in request.raw for request in ground.chats)

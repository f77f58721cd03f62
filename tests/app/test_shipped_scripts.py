"""Scripts that came with the program run without a question, as long as they are as they came."""

from __future__ import annotations

from pathlib import Path

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.effects import Allow, Ask, RunCommand
from hermes.core.session_request import SessionRequest
from hermes.core.world import World


async def test_a_script_of_a_shipped_skill_needs_no_question_until_it_is_changed(
    tmp_path: Path,
) -> None:
    config = load(Home(tmp_path / "home"), flags={"model.provider": "offline"}, env={})
    async with App(config, env={}, world=World()) as app:
        session = await app.open(SessionRequest(source="test", attended=True, cwd=str(tmp_path)))
        skill = app.context.home.root.resolve() / "skills/finance/loan-cost"
        effect = RunCommand(script=f"python3 {skill}/scripts/loans.py --help", cwd=str(tmp_path))
        assert isinstance(session.judge(effect), Allow)
        with (skill / "scripts/loans.py").open("a") as script:
            script.write("\n# more\n")
        assert isinstance(session.judge(effect), Ask)

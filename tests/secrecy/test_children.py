"""What commands find in their environment, however they are started."""

from __future__ import annotations

import re
import shutil

import pytest

from hermes.core.events import ToolFinished
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.secrecy.conftest import Open

HIDDEN = {
    "OPENAI_API_KEY": "sk-proj-aaaabbbbccccdddd1111",
    "ANTHROPIC_API_KEY": "sk-ant-aaaabbbbccccdddd2222",
    "TELEGRAM_BOT_TOKEN": "123456789:AAaaaabbbbccccdddd3333eeee4444ffff",
    "GITHUB_TOKEN": "ghp_aaaabbbbccccdddd5555eeeeffff66667777",
    "SUDO_PASSWORD": "correct-horse-staple-9",
    "AUXILIARY_VISION_API_KEY": "aux-aaaabbbbccccdddd8888",
}
NAMES = "|".join(HIDDEN)
# Names are counted, so that masks cannot make a variable look as if it were not there.
COUNT = f"env | grep -cE '^({NAMES})='; tr '\\0' '\\n' </proc/self/environ | grep -cE '^({NAMES})='"
PROCESS = re.compile(r"proc_[0-9a-f]+")


@pytest.mark.parametrize("how", ["foreground", "pty", "background", "confined"])
async def test_no_key_of_ours_is_in_the_environment_of_a_command(here: Open, how: str) -> None:
    if how == "confined" and shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap")

    def model(request: Request) -> Step:
        found = PROCESS.findall(request.last_text)
        if found and how == "background":
            return calls("process", action="wait", session_id=found[0], timeout=60)
        if request.results:
            return says("done")
        more = {"pty": how == "pty", "background": how == "background"}
        return calls("terminal", command=COUNT, **more)

    settings = {"terminal.confinement": "auto" if how == "confined" else "off"}
    run = await here(model, env=HIDDEN, settings={**settings, "approvals.mode": "off"})
    shown = await run.say("count")
    last = [r.event.result.text for r in shown if isinstance(r.event, ToolFinished)][-1]
    assert re.findall(r"^\d+\s*$", last.replace("\r", ""), re.M)[:2] == ["0", "0"]

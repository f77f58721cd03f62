"""Claims of an answer are compared with what the turn did."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.events import Record, ToolFinished
from hermes.core.messages import Text, ToolResult
from hermes.surfaces.gateway.receipts import Receipts
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.gateway.fake import gateway
from tests.surfaces.gateway.receipt_texts import CLAIMS, HONEST


def result(tool: str, *, failed: bool = False) -> Record:
    event = ToolFinished(
        result=ToolResult(call_id="c", name=tool, parts=(Text(text=""),), failed=failed)
    )
    return Record(session_id="s", n=1, turn_id="t", at=0.0, event=event)


def test_unsupported_claims_are_found() -> None:
    receipts = Receipts()
    missed = [text for text in CLAIMS if not receipts.check(text, [])]
    assert len(missed) <= len(CLAIMS) // 10, missed


def test_honest_texts_raise_no_alarm() -> None:
    receipts = Receipts()
    assert [text for text in HONEST if receipts.check(text, [])] == []


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("I've sent the message to Ann.", "send_message"),
        ("I have saved the list to notes.md.", "write_file"),
        ("I've set a reminder for tomorrow.", "cronjob"),
        ("I've added that to my memory.", "memory"),
    ],
)
def test_a_successful_call_supports_a_claim(text: str, tool: str) -> None:
    receipts = Receipts()
    assert receipts.check(text, [result(tool)]) == ""
    assert receipts.check(text, [result(tool, failed=True)]).startswith("⚠️")
    assert receipts.check(text, [result("web_search")]).startswith("⚠️")


async def test_an_unsupported_claim_gets_a_visible_correction(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if "really" in request.last_text:
            return calls("write_file", path="/tmp/hermes-notes.md", content="x")
        return says("I have saved the list to notes.md.")

    async with gateway(tmp_path, rule) as own:
        (text,) = await own.say("save the list")
        assert text.splitlines()[0] == "I have saved the list to notes.md."
        assert "No file was changed in this turn" in text
        (text,) = await own.say("really save it")
        assert text == "I have saved the list to notes.md."

"""Claims of an answer are compared with what the turn did."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.events import Record, ReplyAdded, ToolFinished
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage
from hermes.surfaces.gateway.claims import find_claims
from hermes.surfaces.gateway.receipts import Receipts
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.gateway.fake import gateway
from tests.surfaces.gateway.receipt_texts import CLAIMS, CLAIMS_BY_KIND, HONEST


def result(tool: str, *, failed: bool = False) -> Record:
    event = ToolFinished(
        result=ToolResult(call_id="c", name=tool, parts=(Text(text=""),), failed=failed)
    )
    return Record(session_id="s", n=1, turn_id="t", at=0.0, event=event)


def test_unsupported_claims_are_found() -> None:
    receipts = Receipts()
    missed = [text for text in CLAIMS if not receipts.check(text, [])]
    assert len(missed) <= len(CLAIMS) // 10, missed


def test_claims_are_found_in_five_languages() -> None:
    missed = [text for kind, text in CLAIMS_BY_KIND if kind not in _kinds(text)]
    assert len(missed) <= len(CLAIMS_BY_KIND) // 20, missed


def _kinds(text: str) -> set[str]:
    kinds = {claim.kind for claim in find_claims(text)}
    # "Saved." may mean a file or the memory.
    return kinds | {"wrote", "remembered"} if "saved" in kinds else kinds


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


def test_looking_something_up_supports_no_claim() -> None:
    receipts = Receipts()
    reply = AssistantMessage(
        parts=(ToolCall(id="c", name="cronjob", arguments={"action": "list"}),), stop="calls"
    )
    asked = ReplyAdded(message=reply, usage=Usage(), model="m", provider="p")
    listed = Record(session_id="s", n=1, turn_id="t", at=0.0, event=asked)
    text = "Reminder set for Friday!"
    assert receipts.check(text, [listed, result("cronjob")]).startswith("⚠️")
    assert receipts.check(text, [result("cronjob")]) == ""


def test_a_tool_of_a_third_party_may_have_done_it() -> None:
    assert Receipts().check("I've sent the mail to Ann.", [result("mcp_mail_deliver")]) == ""


def test_a_correction_speaks_the_language_of_the_answer() -> None:
    text = "Erledigt, ich habe die Mail an Frau Brandt verschickt."
    assert Receipts().check(text, []).startswith("⚠️ Korrektur:")


def test_a_long_answer_is_checked_at_both_ends() -> None:
    text = f"{'This is a long story about the sea. ' * 400}\n\nI've sent the mail to Ann."
    assert Receipts().check(text, []).startswith("⚠️")


async def test_an_unsupported_claim_gets_a_visible_correction(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if "really" in request.last_text:
            return calls("write_file", path="/tmp/hermes-notes.md", content="x")
        return says("I have saved the list to notes.md.")

    async with gateway(tmp_path, rule) as own:
        (text,) = await own.say("save the list")
        assert text.splitlines()[0] == "I have saved the list to notes.md."
        assert text.splitlines()[-1] == "⚠️ Correction: no changed file was confirmed in this turn."
        (text,) = await own.say("really save it")
        assert text == "I have saved the list to notes.md."

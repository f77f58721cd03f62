"""`privacy.redact_pii`: in chats with others the model does not learn who they are."""

from __future__ import annotations

from hermes.core.events import MessageReceived
from hermes.testing.steps import says
from tests.secrecy.conftest import Open

TEXT = "Call jane@example.com or +49 170 555 0123, user_id: 12345678."
WANTED = {"privacy.redact_pii": True}


async def test_the_model_sees_digests_and_the_journal_keeps_what_was_said(here: Open) -> None:
    run = await here([says("ok"), says("ok")], settings=WANTED, source="telegram")
    shown = await run.say(TEXT)
    first = run.sent
    for trace in ("jane@example.com", "555 0123", "12345678"):
        assert trace not in first
    assert "[email:" in first
    (received,) = [r.event for r in shown if isinstance(r.event, MessageReceived)]
    assert "jane@example.com" in received.message.text
    await run.say("And again?")
    assert run.server.requests[1].messages[1] == run.server.requests[0].messages[1], (
        "it stays the same"
    )


async def test_at_ones_own_keyboard_and_by_default_nothing_is_hidden(here: Open) -> None:
    run = await here([says("ok")], settings=WANTED)
    await run.say(TEXT)
    assert "jane@example.com" in run.sent
    other = await here([says("ok")], source="telegram")
    await other.say(TEXT)
    assert "jane@example.com" in other.sent

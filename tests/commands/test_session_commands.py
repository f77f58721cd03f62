"""Commands about the session, on a real session."""

from __future__ import annotations

from hermes.commands.formatting import format_count
from hermes.commands.registry import Outcome, Quit, SendMessage, ShowText, SwitchSession
from hermes.core.commands import Archive, Retitle, Rewind
from hermes.core.effects import RunCommand
from hermes.core.events import CallSettled
from hermes.core.messages import Usage, UserMessage
from hermes.core.session_request import SessionRequest
from tests.commands.conftest import Talk


async def run(talk: Talk, line: str) -> Outcome:
    return await talk.registry.run(line, talk)


def said(talk: Talk) -> list[str]:
    messages = talk.session.transcript.messages
    return [message.text for message in messages if isinstance(message, UserMessage)]


async def test_a_title_is_set_and_shown(talk: Talk) -> None:
    assert await run(talk, "/title") == ShowText(text="This session has no title.")
    assert await run(talk, "/title  My work") == ShowText(
        text="This session is now called 'My work'."
    )
    assert await run(talk, "/title") == ShowText(text="My work")


async def test_undo_takes_turns_back_and_offers_their_words(talk: Talk) -> None:
    for words in ("hello", "what is 1 + 1", "what is 2 + 2"):
        await talk.say(words)
    outcome = await run(talk, "/undo 2")
    assert outcome == ShowText(text="2 turns undone, from “what is 1 + 1”.")
    assert said(talk) == ["hello"]


async def test_undo_never_goes_beyond_the_beginning(talk: Talk) -> None:
    await talk.say("hello")
    assert await run(talk, "/undo 9") == ShowText(text="1 turn undone, from “hello”.")
    assert await run(talk, "/undo") == ShowText(text="There is no turn to undo.")


async def test_usage_is_the_sum_of_what_the_journal_settled(talk: Talk) -> None:
    for words in ("hello", "what is 1 + 1"):
        await talk.say(words)
    await talk.session.send(Rewind(turns=1))
    records = await talk.app.journal.read(talk.session.id)
    settled = [each.event.usage for each in records if isinstance(each.event, CallSettled)]
    total = sum(settled, Usage())
    assert (len(settled), total.requests) == (2, 2)
    assert talk.session.transcript.usage == total
    shown = await run(talk, "/usage")
    assert isinstance(shown, ShowText)
    numbers = f"in {format_count(total.prompt)} · out {format_count(total.output)} · 2 calls"
    assert shown.text.startswith(f"Session   {numbers}")


async def test_retry_sends_the_last_words_again(talk: Talk) -> None:
    assert await run(talk, "/retry") == ShowText(text="There is no message to send again.")
    await talk.say("hello")
    assert await run(talk, "/retry") == SendMessage(text="hello")
    assert said(talk) == []


async def test_new_leads_to_a_new_session_with_a_free_title(talk: Talk) -> None:
    await run(talk, "/title Work")
    assert await run(talk, "/new Work") == SwitchSession(
        title="Work #2", text="This is a new session.", reason="new"
    )


async def test_resume_lists_and_finds_sessions(talk: Talk) -> None:
    first = talk.session
    await talk.say("hello")
    await first.send(Retitle(title="Greetings"))
    talk.session = await talk.app.open(SessionRequest(source="cli", attended=False))
    await talk.say("help")

    listed = await run(talk, "/resume")
    assert isinstance(listed, ShowText)
    assert "Greetings" in listed.text and "(current)" in listed.text
    for wanted in ("2", "Greetings", first.id):
        assert await run(talk, f"/resume {wanted}") == SwitchSession(session_id=first.id)
    assert await run(talk, "/resume 1") == ShowText(text="This session is already open.")
    await first.send(Archive())
    assert first.id not in str(await run(talk, "/resume"))
    assert await run(talk, f"/resume {first.id}") == SwitchSession(session_id=first.id)
    await first.send(Archive(away=False))
    unknown = await run(talk, "/resume nothing like that")
    assert isinstance(unknown, ShowText) and "There is no session" in unknown.text

    suggested = await talk.registry.complete("/resume gree", talk)
    assert [each.text for each in suggested] == ["Greetings"]


async def test_usage_tells_tokens_and_the_share_of_the_window(talk: Talk) -> None:
    await talk.say("hello")
    shown = await run(talk, "/usage")
    assert isinstance(shown, ShowText)
    session, context, model = shown.text.split("\n")
    assert "1 call " in session and "/ 1M (0%)" in context
    assert model == "Model     offline-assistant (offline)"


async def test_quit_leaves(talk: Talk) -> None:
    assert await run(talk, "/exit") == Quit()


async def test_what_would_be_lost_for_ever_wants_to_be_confirmed(talk: Talk) -> None:
    assert await talk.registry.run("/quit --delete", talk) == Quit(delete=True), "nothing to lose"
    await talk.say("help")
    asked = await talk.registry.run("/quit --delete", talk)
    assert isinstance(asked, ShowText)
    assert "Confirm with `/quit --delete --yes`" in asked.text
    assert await talk.registry.run("/quit --delete --yes", talk) == Quit(delete=True)
    assert await talk.registry.run("/quit", talk) == Quit()


async def test_leaving_a_session_that_works_wants_to_be_confirmed(talk: Talk) -> None:
    workspace = talk.session.workspace
    process = await workspace.spawn(RunCommand(script="sleep 60", cwd=workspace.root))
    for line in ("/new", "/new Plan", "/clear"):
        asked = await talk.registry.run(line, talk)
        assert isinstance(asked, ShowText)
        assert asked.text == f"This would stop 1 background process. Confirm with `{line} --yes`."
    moved = await talk.registry.run("/new Plan --yes", talk)
    assert isinstance(moved, SwitchSession)
    assert moved.title == "Plan"
    await workspace.processes.kill(process.id)
    assert isinstance(await talk.registry.run("/new", talk), SwitchSession)

"""Values that become known while a session runs, values that look harmless, and the switch."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.context.references import expand_references
from hermes.core.commands import Compact
from hermes.core.events import MessageReceived, ReplyAdded, ToolFinished
from hermes.core.prompt import Notice, TextDelta
from hermes.testing.faults import paced
from hermes.testing.steps import calls, says, thinks
from hermes.undo.workspace import UndoService
from tests.secrecy.conftest import Open

LATER = "correct-horse-battery-77"
LOOKS = "ghp_" + "aB3dE6gH9j" * 3 + "kLmN12"


async def test_a_value_that_is_written_to_the_file_later_is_masked_from_then_on(
    here: Open, tmp_path: Path
) -> None:
    run = await here([calls("terminal", command=f"echo {LATER}"), says("a"), says("b")])
    await run.say("go")
    assert LATER in run.sent
    tmp_path.joinpath("home/.env").write_text(f"DB_PASSWORD={LATER}\n")
    shown = await run.say("what is it?")
    assert LATER not in run.sent, "neither in what is new nor in what was said before"
    assert not any(LATER in repr(record) for record in shown)


async def test_a_login_that_is_made_later_is_masked_from_then_on(
    here: Open, tmp_path: Path
) -> None:
    run = await here([says("a"), says(f"the token is {LATER}.")])
    await run.say("go")
    entry = {"id": "1", "label": "x", "access_token": LATER, "added_at": 1.0}
    accounts = {"version": 1, "credential_pool": {"openrouter": [entry]}}
    tmp_path.joinpath("home/auth.json").write_text(json.dumps(accounts))
    shown = await run.say("go on")
    assert not any(LATER in repr(record) for record in shown)
    assert any("[secret:known#1]" in repr(record) for record in shown)


async def test_the_model_gets_a_persons_words_as_typed_and_the_journal_masks_them(
    here: Open,
) -> None:
    run = await here([says("ok"), says("ok")], env={"DB_PASSWORD": LATER})
    typed = f"use {LOOKS} and {LATER} for it"
    shown = await run.say(typed)
    assert typed in run.sent
    await run.say("and now?")
    assert typed in run.sent, "the prompt keeps its beginning"
    (received,) = [r.event for r in shown if isinstance(r.event, MessageReceived)]
    assert received.message.text == "use [secret:github#1] and [secret:known#1] for it"
    (notice,) = [r.event for r in shown if isinstance(r.event, Notice)]
    assert notice.text.startswith("The model gets the secret in your message; the history keeps")
    stored = await run.app.archive.records(run.session.id)
    assert not any(secret in repr(stored) for secret in (LOOKS, LATER))


async def test_a_persons_phone_number_and_address_are_kept_as_typed(here: Open) -> None:
    run = await here(lambda _: says("words " * 400))
    typed = "I live at 12 Main Street; call +14155552671 or mail bob@example.org"
    shown = await run.say(typed)
    assert typed in run.sent
    (received,) = [r.event for r in shown if isinstance(r.event, MessageReceived)]
    assert received.message.text == typed
    assert not [r for r in shown if isinstance(r.event, Notice)]
    for _ in range(5):
        await run.say("Go on.")
    await run.session.send(Compact())
    await run.say("Where was I to call you?")
    assert "+14155552671" in run.sent, "also in the summary"


async def test_what_a_reference_attaches_is_not_a_persons_own_words(here: Open) -> None:
    run = await here([says("ok")])
    run.work.joinpath("notes.txt").write_text(f"token {LOOKS}\n")
    made = await expand_references(
        run.app.context, run.app.models, run.session, f"is {LOOKS} in @file:notes.txt ?"
    )
    await run.say(made.text)
    assert run.sent.count(LOOKS) == 1
    assert f"is {LOOKS} in" in run.sent


async def test_a_value_found_by_its_name_is_masked_later_but_not_in_a_persons_words(
    here: Open,
) -> None:
    value = "q9Zk4mT7xW2sR8vB1nC6"
    named, bare = f"echo token = {value}", f"printf '%s, done' {value}"
    run = await here([calls("terminal", command=named), calls("terminal", command=bare), says("b")])
    await run.say(f"look for {value} here")
    results = [m["content"] for m in json.loads(run.sent)["messages"] if m["role"] == "tool"]
    assert len(results) == 2
    assert not any(value in str(each) for each in results)
    assert f"look for {value} here" in run.sent


async def test_the_switch_leaves_formats_but_never_configured_values(here: Open) -> None:
    run = await here(
        [calls("terminal", command=f"echo {LOOKS} {LATER}"), says("a")],
        env={"DB_PASSWORD": LATER},
        settings={"security.redact_secrets": False},
    )
    shown = await run.say("go")
    assert LOOKS in run.sent
    assert LATER not in run.sent
    assert not any(LATER in repr(record) for record in shown)


async def test_common_words_and_places_are_no_secrets(here: Open) -> None:
    names = {
        "DB_PASSWORD": "password",
        "SIGNING_KEY": "/etc/ssl/keys/own.pem",
        "OTHER_TOKEN": "changeme",
    }
    run = await here([says("ok")], env=names)
    text = "The password in /etc/ssl/keys/own.pem is not changeme"
    shown = await run.say(text)
    (received,) = [r.event for r in shown if isinstance(r.event, MessageReceived)]
    assert received.message.text == text


async def test_what_is_held_back_of_a_reply_is_shown_in_the_end(here: Open) -> None:
    words = f"Well, the answer to {LATER} is rather long, and it ends without a stop"
    run = await here([paced(says(words), chunk=3)], env={"DB_PASSWORD": LATER})
    shown = await run.say("tell me")
    pieces = [r.event.text for r in shown if isinstance(r.event, TextDelta)]
    (reply,) = [r.event for r in shown if isinstance(r.event, ReplyAdded)]
    assert "".join(pieces) == reply.message.text == words.replace(LATER, "[secret:known#1]")


async def test_arguments_are_run_as_they_are_and_kept_without_secrets(here: Open) -> None:
    steps = [calls("terminal", command=f"printf %s {LATER} >out.txt; wc -c <out.txt"), says("a")]
    run = await here(steps, env={"DB_PASSWORD": LATER})
    shown = await run.say("go")
    assert run.work.joinpath("out.txt").read_text() == LATER
    (finished,) = [r.event for r in shown if isinstance(r.event, ToolFinished)]
    assert finished.result.text == str(len(LATER))
    assert not any(LATER in repr(record) for record in shown)


async def test_undo_tells_a_command_without_its_secrets_and_keeps_files_for_the_owner_alone(
    here: Open,
) -> None:
    long = "x" * 90
    command = f"echo {long} {LATER} {LOOKS} >out.txt"
    run = await here([calls("terminal", command=command), says("a")], env={"DB_PASSWORD": LATER})
    await run.say("go")
    undo = UndoService(run.app.context)
    (made,) = await undo.in_thread(lambda history: history.checkpoints(run.session.id))
    assert made.words.startswith(f"echo {long} [secret:known#1] ")
    kept = run.app.context.home.root / "checkpoints"
    assert [each for each in kept.rglob("*") if each.stat().st_mode & 0o077] == []
    assert run.work.joinpath("out.txt").read_text() == f"{long} {LATER} {LOOKS}\n"


async def test_a_thought_with_a_secret_in_it_is_not_kept_a_second_time_in_its_block(
    here: Open,
) -> None:
    run = await here([thinks(f"HF_TOKEN={LOOKS}, I see", then=says("ok")), says("b")])
    shown = await run.say("go")
    assert not any(LOOKS in repr(record) for record in shown)
    await run.say("go on")
    assert LOOKS not in run.sent

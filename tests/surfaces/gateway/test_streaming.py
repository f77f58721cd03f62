"""An answer is shown while it is generated, within the limits of the platform."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

from hermes.codec.values import replace
from hermes.core.errors import PlatformUnreachable, TargetGone
from hermes.surfaces.gateway.options import DisplayOptions
from hermes.testing.faults import paced
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls_many, says
from tests.surfaces.gateway.fake import NARROW, PROMPT, Failing, Gateway, gateway, virtual

SHOWN = DisplayOptions(tool_progress="all")
WORDS = "Here is an answer that is generated word by word until it is complete."
CURSOR = "▉"


def slowly(text: str) -> Step:
    return paced(says(text), chunk=8, between_seconds=0.05)


async def stream(folder: Path, text: str, *failing: Failing, **options: Any) -> Gateway:
    """The gateway after an answer that takes a while, with an edit every 0.1 s."""
    options = {"display": SHOWN, "abilities": NARROW, **options}
    own_options = replace(PROMPT, streaming=replace(PROMPT.streaming, edit_seconds=0.1))
    async with gateway(folder, lambda _: slowly(text), options=own_options, **options) as own:
        own.fake.failing += failing
        await own.say("hello")
        return own


async def test_an_answer_grows_and_ends_without_a_cursor(tmp_path: Path) -> None:
    own = await stream(tmp_path, WORDS)
    assert own.fake.texts == [WORDS]
    shown = [call for call in own.fake.calls if call.kind in ("post", "edit")]
    assert len(shown) >= 3
    assert all(call.text.endswith(CURSOR) for call in shown[:-1])
    assert all(WORDS.startswith(call.text.removesuffix(" " + CURSOR)) for call in shown)
    spaces = [b.at - a.at for a, b in pairwise(shown[:-1])]
    assert all(space >= 0.1 for space in spaces)


async def test_a_long_answer_continues_in_further_messages(tmp_path: Path) -> None:
    text = "\n".join(f"This is line {n} of a long answer." for n in range(14))
    own = await stream(tmp_path, text)
    assert len(own.fake.texts) == 3
    assert own.fake.texts[0].endswith("(1/3)")
    assert all(len(each) <= NARROW.max_chars for each in own.fake.texts)
    joined = "\n".join(each.rpartition(" (")[0] for each in own.fake.texts)
    assert joined == text


async def test_a_platform_that_cannot_edit_gets_the_whole_answer(tmp_path: Path) -> None:
    own = await stream(tmp_path, WORDS, abilities=replace(NARROW, edits=False))
    assert [call.text for call in own.fake.calls] == [WORDS]


async def test_edits_that_fail_slow_down_and_the_end_is_complete(tmp_path: Path) -> None:
    failures = [Failing(error=PlatformUnreachable, on="edit", retry_after=0.2)] * 2
    own = await stream(tmp_path, WORDS, *failures)
    assert own.fake.texts == [WORDS]
    gaps = [b.at - a.at for a, b in pairwise(own.fake.calls)]
    assert max(gaps) >= 0.2


async def test_a_first_message_that_fails_is_sent_once_at_the_end(tmp_path: Path) -> None:
    own = await stream(tmp_path, WORDS, *[Failing(error=PlatformUnreachable, retry_after=0.01)] * 3)
    assert own.fake.texts == [WORDS]
    assert not own.fake.seen("edit")


async def test_an_edit_of_a_message_that_is_gone_ends_the_stream(tmp_path: Path) -> None:
    own = await stream(tmp_path, WORDS, Failing(error=TargetGone, on="edit"))
    assert own.fake.texts == [WORDS]


async def test_a_marker_for_silence_never_appears(tmp_path: Path) -> None:
    own = await stream(tmp_path, "[SILENT]")
    assert own.fake.texts == ["I have nothing to add."]
    assert all("SIL" not in call.text for call in own.fake.calls)


async def test_reasoning_tags_are_not_shown(tmp_path: Path) -> None:
    own = await stream(tmp_path, "<think>secret plans</think>The answer is four, as it should be.")
    assert own.fake.texts == ["The answer is four, as it should be."]
    assert all("secret" not in call.text and "<" not in call.text for call in own.fake.calls)


def look_first(request: Request) -> Step:
    if not request.results:
        return calls_many(
            ("search_files", {"pattern": "*.py"}),
            ("search_files", {"pattern": "*.md"}),
            text="Let me look at the files.",
        )
    return says("There is nothing here.")


async def test_tool_calls_are_shown_between_the_texts(tmp_path: Path) -> None:
    async with gateway(tmp_path, look_first, display=SHOWN) as own:
        await own.say("what is here?")
        first, bubble, last = own.fake.texts
        assert (first, last) == ("Let me look at the files.", "There is nothing here.")
        assert [line.split(" ", 1)[1] for line in bubble.splitlines()] == [
            "search_files: *.py",
            "search_files: *.md",
        ]


async def test_progress_can_be_limited_deleted_and_off(tmp_path: Path) -> None:
    for n, (display, bubbles) in enumerate(
        (
            (replace(SHOWN, tool_progress="new"), 1),
            (replace(SHOWN, tool_progress="all", deletes_progress=True), 0),
            (replace(SHOWN, tool_progress="off"), 0),
            (replace(SHOWN, tool_progress="all", groups_progress=False), 2),
        )
    ):
        async with gateway(tmp_path / str(n), look_first, display=display) as own:
            await own.say("what is here?")
            assert len(own.fake.texts) == 2 + bubbles


async def test_calls_can_be_logged_instead_of_shown(tmp_path: Path) -> None:
    async with gateway(tmp_path, look_first, display=replace(SHOWN, tool_progress="log")) as own:
        await own.say("what is here?")
        assert len(own.fake.texts) == 2
        lines = (own.stage.home / "logs" / "tool_calls.log").read_text("utf-8").splitlines()
        assert len(lines) == 2


async def test_texts_between_calls_can_be_left_out(tmp_path: Path) -> None:
    display = DisplayOptions(tool_progress="off", interim_messages=False)
    async with gateway(tmp_path, look_first, display=display) as own:
        assert await own.say("what is here?") == ["There is nothing here."]


async def test_a_long_turn_shows_typing_and_how_long_it_takes(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def rule(_: Request) -> Step:
        await release.wait()
        return says("Done.")

    abilities = replace(NARROW, typing_seconds=4.0)
    async with gateway(tmp_path, rule, display=SHOWN, abilities=abilities, world=virtual()) as own:
        await own.deliver("a long task")
        await own.stage.server.received.reaches(1)
        await own.clock.advance(370)
        typing = [call.at for call in own.fake.seen("typing")]
        assert len(typing) > 80
        assert {round(b - a, 3) for a, b in pairwise(typing)} == {4.0}
        assert own.fake.texts == ["Still working (6m 00s): waiting for the model."]
        release.set()
        await own.clock.run_until(own.idle())
        assert own.fake.texts[-1] == "Done."


async def test_a_turn_without_progress_is_stopped(tmp_path: Path) -> None:
    async def rule(_: Request) -> Step:
        await asyncio.Event().wait()
        return says("Never.")

    options = replace(PROMPT, inactivity_seconds=600)
    async with gateway(tmp_path, rule, options=options, world=virtual()) as own:
        await own.deliver("a long task")
        await own.stage.server.received.reaches(1)
        await own.clock.advance(650)
        await own.clock.run_until(own.idle())
        (text,) = own.fake.texts
        assert text.startswith("I stopped after 10 minutes without any progress")
        assert await own.ledger.open_messages() == ()


async def test_the_messages_of_an_answer_come_with_human_pauses(tmp_path: Path) -> None:
    text = "\n".join(f"This is line {n} of a long answer." for n in range(14))
    streaming = replace(PROMPT.streaming, enabled=False, human_delay_ms=(800, 2500))
    options = replace(PROMPT, streaming=streaming)
    async with gateway(
        tmp_path, lambda _: says(text), abilities=NARROW, options=options, world=virtual()
    ) as own:
        await own.clock.run_until(own.say("hello"))
        times = [call.at for call in own.fake.seen("post")]
        assert len(times) == 3
        assert all(0.8 <= b - a <= 2.6 for a, b in pairwise(times))


async def test_an_answer_that_took_long_is_posted_as_a_new_message(tmp_path: Path) -> None:
    streaming = replace(PROMPT.streaming, edit_seconds=0.1, fresh_final_seconds=0.2)
    options = replace(PROMPT, streaming=streaming)
    async with gateway(
        tmp_path, lambda _: slowly(WORDS), options=options, display=SHOWN, abilities=NARROW
    ) as own:
        await own.say("hello")
        assert own.fake.texts == [WORDS]
        assert [call.kind for call in own.fake.calls][-2:] == ["post", "delete"]
        assert await own.ledger.open_posts() == ()


async def test_reasoning_is_shown_above_the_answer_if_wanted(tmp_path: Path) -> None:
    def rule(_: Request) -> Step:
        return Step(text="42", reasoning="first\nsecond")

    async with gateway(tmp_path, rule) as own:
        assert await own.say("hello") == ["42"]
    shown = DisplayOptions(streaming=False, tool_progress="off", show_reasoning=True)
    async with gateway(tmp_path / "shown", rule, display=shown) as own:
        assert await own.say("hello") == ["> first\n> second\n\n42"]

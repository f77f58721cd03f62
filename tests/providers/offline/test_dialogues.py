"""Requests of several steps, references to what came before, and what happens when things fail."""

from __future__ import annotations

import pytest

from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolMessage, user_says
from tests.providers.offline.talk import (
    SPECS,
    WARM,
    Answer,
    Talk,
    files,
    matches,
    ran,
    refused,
    shown,
    todos,
)

LONG_LISTING = """total 12
-rw-r--r-- 1 ann ann 9000 Nov 15 08:45 big.log
drwxr-xr-x 2 ann ann 4096 Nov 15 08:45 src
-rw-r--r-- 1 ann ann   12 Nov 15 08:45 a.txt"""


async def test_a_later_step_uses_what_an_earlier_one_found() -> None:
    turn = await Talk().say(
        "find the biggest file here and show its first 2 lines",
        ran(LONG_LISTING),
        shown(["one", "two"], total=300),
    )
    assert turn.calls == (
        ("terminal", {"command": "ls -lAS"}),
        ("read_file", {"path": "big.log", "offset": 1, "limit": 2}),
    )
    assert turn.text == (
        "The biggest file in this folder is `big.log` with 9.0 kB.\n\n"
        "`big.log`, lines 1 to 2 of 300:\n\n```\none\ntwo\n```\n\n"
        "Say “more” for the next part."
    )


async def test_a_search_is_followed_by_its_first_file() -> None:
    turn = await Talk().say(
        "search TODO in src and show the first file",
        matches(b_py=["# TODO"], a_py=["# TODO", "TODO"]),
        shown(["# TODO"]),
    )
    assert [values["path"] for _, values in turn.calls] == ["src", "b.py"]
    assert turn.text.startswith("3 matches for `TODO` in `src`. They are in 2 files.")
    assert turn.text.endswith("`b.py`:\n\n```python\n# TODO\n```")


async def test_a_file_is_created_and_read_back() -> None:
    turn = await Talk().say(
        "create a.txt with hello and read it back",
        ran(),
        Answer(text="Wrote 6 bytes."),
        shown(["hello"]),
    )
    assert [name for name, _ in turn.calls] == ["terminal", "write_file", "read_file"]
    assert turn.text == "I wrote one line to `a.txt`.\n\n`a.txt`:\n\n```\nhello\n```"


async def test_an_existing_file_is_not_overwritten_by_create() -> None:
    turn = await Talk().say("create a.txt with hello and read it back", ran("./a.txt"))
    assert [name for name, _ in turn.calls] == ["terminal"]
    assert "exists already" in turn.text
    assert "Not done: `read it back`" in turn.text


async def test_a_failed_step_ends_the_request_and_names_what_was_not_done() -> None:
    turn = await Talk().say(
        "run pytest and then show git status", ran("1 failed", code=1), ran("## main")
    )
    assert turn.calls == (("terminal", {"command": "pytest"}),)
    assert turn.text == (
        "`pytest` ended with exit code 1.\n\n```\n1 failed\n```\n\n"
        "I stopped there. Not done: `show git status`."
    )


async def test_a_single_word_is_run_when_it_is_a_program() -> None:
    turn = await Talk().say("run frobnicate", ran("/usr/bin/frobnicate"), ran("done"))
    commands = [values["command"] for _, values in turn.calls]
    assert commands == ["which frobnicate", "frobnicate"]
    assert "`frobnicate` is done" in turn.text


async def test_a_word_that_is_no_program_is_not_run() -> None:
    turn = await Talk().say("run marathons2", ran(code=1))
    assert turn.calls == (("terminal", {"command": "which marathons2"}),)
    assert turn.text == "`marathons2` is not installed, or not on the PATH."


async def test_a_refusal_is_told_and_not_tried_again() -> None:
    turn = await Talk().say("delete a.txt", refused())
    assert len(turn.calls) == 1
    assert turn.text.startswith("`rm a.txt` was not allowed.")


async def test_a_missing_tool_is_named() -> None:
    turn = await Talk(tools=()).say("list the files")
    assert turn.calls == ()
    assert turn.text == "That needs the tool `terminal`, which this session does not have."


async def test_a_missing_tool_is_not_taken_for_an_answer() -> None:
    assert "needs the tool" in (await Talk(tools=()).say("does a.txt exist?")).text


async def test_arguments_that_a_tool_does_not_know_are_left_out() -> None:
    plain = {"type": "object", "properties": {"command": {"type": "string"}}, "required": []}
    tools = tuple(
        type(spec)(name=spec.name, description="", parameters=plain)
        for spec in SPECS
        if spec.name == "terminal"
    )
    turn = await Talk(tools=tools).say("run `ls` in src")
    assert turn.calls == (("terminal", {"command": "ls"}),)


async def test_a_turn_goes_on_where_it_was_after_a_crash() -> None:
    text = "find the biggest file here and show its first lines"
    whole = Talk()
    finished = await whole.say(text, ran(LONG_LISTING), shown(["one"]))
    cut = Talk(messages=whole.messages[:3])
    resumed = await cut.go_on(shown(["one"]))
    assert resumed.calls == finished.calls[1:]
    assert resumed.text == finished.text


async def test_calls_that_the_plan_never_made_end_the_turn() -> None:
    call = ToolCall(id="x", name="web_search", arguments={"query": "cats"})
    messages = (
        user_says("list the files"),
        AssistantMessage(parts=(call,), stop="calls"),
        ToolMessage(results=(Answer(text="ten cats").to(call),)),
    )
    turn = await Talk(messages=messages).go_on()
    assert turn.calls == ()
    assert "calls that I did not make (`web_search`)" in turn.text
    assert "ten cats" in turn.text


async def test_a_request_never_takes_more_than_a_dozen_rounds() -> None:
    many = " and ".join(f"read {name}.txt" for name in "abcdefgh")
    turn = await Talk().say(f"{many}", *[shown(["x"])] * 20)
    assert len(turn.calls) == 8
    waiting = Talk()
    stuck = await waiting.say("stop all background jobs", *[Answer(text="?")] * 20)
    assert len(stuck.calls) <= 12


async def test_the_second_one_is_the_second_that_was_shown() -> None:
    talk = Talk()
    await talk.say("what is in src?", ran("a.py\nlib/\nb.py"))
    assert (await talk.say("the third one", shown(["x"]))).calls[0][1]["path"] == "src/b.py"
    assert (await talk.say("open the second", ran("c.py"))).calls == (
        ("terminal", {"command": "ls -1p src/lib"}),
    )


async def test_again_and_elsewhere_repeat_the_last_request_that_did_something() -> None:
    talk = Talk()
    first = await talk.say("find TODO in src", matches(a_py=["TODO"]))
    await talk.say("thanks!")
    assert (await talk.say("again", matches(a_py=["TODO"]))).calls == first.calls
    assert (await talk.say("and in docs?", matches())).calls[0][1]["path"] == "docs"
    assert (await talk.say("once more", matches())).calls[0][1]["path"] == "docs"


async def test_again_without_anything_before_says_so_at_once() -> None:
    talk = Talk()
    for _ in range(30):
        turn = await talk.say("again")
    assert turn.text.startswith("There is nothing earlier")


async def test_more_shows_the_next_page_and_then_the_end() -> None:
    talk = Talk()
    await talk.say("read a.txt", shown(["x"] * 100, total=101))
    more = await talk.say("more", shown(["last"], first=101, total=101))
    assert more.calls == (("read_file", {"path": "a.txt", "offset": 101, "limit": 100}),)
    assert (await talk.say("more")).text == "That was all of `a.txt`."


async def test_lines_that_the_tool_will_not_repeat_are_shown_from_before() -> None:
    talk = Talk()
    await talk.say("read a.txt", shown(["hello"]))
    unchanged = Answer(text="unchanged since you read it", details={"status": "unchanged"})
    too_often = Answer(text="Refused: a.txt is unchanged", failed=True)
    for answer in (unchanged, too_often):
        turn = await talk.say("read it again", answer)
        assert turn.text == "`a.txt`:\n\n```\nhello\n```"


async def test_why_explains_the_last_failure_with_a_next_step() -> None:
    talk = Talk()
    await talk.say("run frobnicate -x", ran("bash: frobnicate: command not found", code=127))
    turn = await talk.say("why did that fail?")
    assert turn.calls == ()
    assert "`frobnicate -x` ended with exit code 127." in turn.text
    assert "is … installed?" in turn.text


async def test_a_missing_file_comes_with_similar_names() -> None:
    details = {"path": "/w/note.txt", "similar_files": ["/w/notes.txt"]}
    turn = await Talk().say("read note.txt", Answer(text="no", details=details, failed=True))
    assert turn.text == "There is no file `/w/note.txt`.\n\nDid you mean `notes.txt`?"


async def test_what_is_missing_is_asked_for_and_then_done() -> None:
    asked = Answer(text="The person answered", details={"user_response": "notes.txt"})
    turn = await Talk(messages=WARM).say("read a file", asked, shown(["x"]))
    assert turn.calls == (
        (
            "clarify",
            {
                "question": "Which file or folder do you mean?",
                "choices": ["a.txt", "b.txt", "c.txt"],
            },
        ),
        ("read_file", {"path": "notes.txt", "offset": 1, "limit": 100}),
    )


@pytest.mark.parametrize("answer", [Answer(text="Nobody", details={"user_response": None})])
async def test_without_an_answer_nothing_is_done(answer: Answer) -> None:
    turn = await Talk().say("run a command", answer)
    assert [name for name, _ in turn.calls] == ["clarify"]
    assert turn.text.startswith("I do not know which command to run.")


async def test_it_without_anything_in_view_is_asked_for() -> None:
    turn = await Talk(tools=tuple(spec for spec in SPECS if spec.name != "clarify")).say("read it")
    assert turn.calls == ()
    assert turn.text.startswith("I do not know which file or folder you mean.")


async def test_a_to_do_gets_a_free_id_and_is_ticked_off_by_its_words() -> None:
    talk = Talk()
    have = ("2", "call mum", "pending")
    added = await talk.say(
        "add buy milk to my todo list", todos(have), todos(have, ("3", "buy milk", "pending"))
    )
    assert added.calls[1] == (
        "todo",
        {"todos": [{"id": "3", "content": "buy milk", "status": "pending"}], "merge": True},
    )
    done = await talk.say(
        "mark buy milk as done",
        todos(have, ("3", "buy milk", "pending")),
        todos(have, ("3", "buy milk", "completed")),
    )
    assert done.text == ("Done: buy milk\n\nOne thing is open:\n\n1. [ ] call mum\n2. [x] buy milk")


async def test_a_to_do_that_could_be_two_is_not_ticked_off() -> None:
    both = todos(("1", "buy milk", "pending"), ("2", "buy bread", "pending"))
    turn = await Talk().say("mark buy as done", both)
    assert len(turn.calls) == 1
    assert turn.text.startswith("I cannot tell which item you mean.")


async def test_all_background_processes_are_stopped_in_one_round() -> None:
    listed = Answer(
        text="two",
        details={
            "processes": [
                {"session_id": "proc_1", "status": "running"},
                {"session_id": "proc_2", "status": "exited"},
                {"session_id": "proc_3", "status": "running"},
            ]
        },
    )
    gone = Answer(text="Killed.", details={"status": "killed", "exit_code": -9})
    turn = await Talk().say("stop all background jobs", listed, gone, gone)
    assert [values.get("session_id") for _, values in turn.calls] == [None, "proc_1", "proc_3"]
    assert turn.text == "Stopped: `proc_1`, `proc_3`."


async def test_a_move_that_found_its_target_taken_is_told() -> None:
    kept = await Talk().say("move a.txt to b.txt", ran())
    assert "exists already" in kept.text
    moved = await Talk().say("move a.txt to b.txt", ran("renamed 'a.txt' -> 'b.txt'"))
    assert moved.text == "`a.txt` is now `b.txt`."


async def test_text_for_a_new_file_is_added_when_the_append_finds_none() -> None:
    missing = Answer(text="there is no such file.", failed=True)
    turn = await Talk().say("append hello to a.txt", missing, Answer(text="Done."))
    assert turn.calls[1][1]["patch"] == (
        "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"
    )


async def test_an_append_that_fails_otherwise_is_not_tried_in_another_way() -> None:
    turn = await Talk().say("append hello to a.txt", refused())
    assert len(turn.calls) == 1


async def test_long_lists_and_outputs_are_cut_sensibly() -> None:
    listing = await Talk().say("list the files", ran("\n".join(f"f{n}" for n in range(42))))
    assert listing.text.endswith("- `f29`\n- … and 12 more")
    output = await Talk().say("run make", ran("\n".join(f"line {n}" for n in range(100))))
    assert "… 40 more lines are not shown." in output.text
    assert output.text.endswith("line 99\n```")


async def test_sums_need_no_tool() -> None:
    talk = Talk(tools=())
    assert (await talk.say("what is 15% of 80?")).text == "15% of 80 = 12"
    assert (await talk.say("what is 1/0")).text == "`1/0` divides by zero, which has no result."


async def test_a_question_how_is_answered_with_what_to_say() -> None:
    turn = await Talk().say("how do I rename a file?")
    assert turn.calls == ()
    assert "- `rename draft.txt to final.txt`" in turn.text


async def test_a_half_understood_request_does_nothing_and_says_which_half() -> None:
    turn = await Talk().say("list the files and write a poem about them")
    assert turn.calls == ()
    assert "I would understand this part alone: `list the files`." in turn.text


async def test_earlier_questions_are_recalled_from_the_transcript() -> None:
    talk = Talk()
    await talk.say("list the files", ran("a"))
    await talk.say("what time is it?", ran("now"))
    turn = await talk.say("what did I ask before?")
    assert turn.text == (
        "Your 2 requests before this, the newest last:\n\n- `list the files`\n- `what time is it?`"
    )


async def test_an_answer_from_before_is_repeated_word_by_word() -> None:
    talk = Talk()
    before = await talk.say("what time is it?", ran("noon"))
    assert (await talk.say("what did you say?")).text == before.text


async def test_several_messages_at_once_are_done_in_order() -> None:
    messages = (user_says("list the files"), user_says("what time is it?"))
    turn = await Talk(messages=messages).go_on(ran("a"), ran("noon"))
    assert [values["command"] for _, values in turn.calls] == ["ls -1p", "date"]
    assert turn.text == "One entry in this folder:\n\n- `a`\n\nIt is noon."


async def test_what_an_interrupted_turn_left_undone_is_not_taken_up_by_the_next() -> None:
    talk = Talk()
    await talk.say("list the files and read the first one", ran("a.txt"))
    turn = await talk.say("what time is it?", ran("noon"))
    assert turn.text == "It is noon."


async def test_another_model_s_answers_can_be_referred_to() -> None:
    call = ToolCall(id="tool_use_1", name="read_file", arguments={"path": "src/deep.py"})
    messages = (
        user_says("please have a look at the module that does the deep thing"),
        AssistantMessage(parts=(Text(text="Sure."), call), stop="calls"),
        ToolMessage(results=(shown(["x"]).to(call),)),
        AssistantMessage(parts=(Text(text="It is a constant."),)),
    )
    turn = await Talk(messages=messages).say("how many lines does it have?", ran("1 src/deep.py"))
    assert turn.calls == (("terminal", {"command": "wc -l src/deep.py"}),)


async def test_files_are_counted_from_the_last_list() -> None:
    turn = await Talk().say("find all python files and count them", files("a.py", "b.py"))
    assert turn.text.endswith("2 of them.")

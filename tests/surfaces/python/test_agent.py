"""`AIAgent` as a program uses it: against a model server over HTTP, with callbacks."""

from __future__ import annotations

import functools
import threading
from typing import Any

from hermes.surfaces.python.arguments import SETTINGS, settings_of
from hermes.testing.faults import hangs
from hermes.testing.steps import Step, calls, calls_many, fails, says, thinks
from tests.surfaces.python.programs import Programs


def test_a_chat_is_one_call_and_its_words(programs: Programs) -> None:
    agent = programs.agent(says("Hello."), says("Still here."))
    assert agent.chat("hi") == "Hello."
    assert agent.chat("and now?") == "Still here."
    assert len(programs.server.requests) == 2


def test_the_result_says_what_happened(programs: Programs) -> None:
    agent = programs.agent(calls("todo", todos=[]), thinks("hm", then=says("done")))
    result = agent.run_conversation("plan")
    assert result["final_response"] == "done"
    assert result["last_reasoning"] == "hm"
    assert (result["completed"], result["failed"], result["interrupted"]) == (True, False, False)
    assert result["api_calls"] == 2
    assert result["turn_exit_reason"].startswith("text_response(")
    assert [m["role"] for m in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert result["total_tokens"] == result["prompt_tokens"] + result["completion_tokens"] > 0


def test_a_failure_is_named(programs: Programs) -> None:
    result = programs.agent(fails(401)).run_conversation("hi")
    assert (result["failed"], result["completed"]) == (True, False)
    assert result["failure_reason"] in ("auth", "auth_permanent")
    assert result["error"]


def test_callbacks_are_told_in_order(programs: Programs) -> None:
    seen: list[Any] = []
    agent = programs.agent(
        Step(text="I look.", calls=calls("read_file", path="a.txt").calls),
        says("It says hello."),
        stream_delta_callback=lambda text: seen.append(("delta", text)),
        interim_assistant_callback=lambda text: seen.append(("interim", text)),
        tool_gen_callback=lambda name: seen.append(("writes", name)),
        tool_start_callback=lambda _id, name, args: seen.append(("start", name, args)),
        tool_complete_callback=lambda _id, name, _args, _r: seen.append(("complete", name)),
        tool_progress_callback=lambda kind, name, words, *_a, **_k: seen.append((kind, words)),
        step_callback=lambda n, prev_tools: seen.append(("step", n, len(prev_tools))),
    )
    (programs.folder / "a.txt").write_text("hello\n")
    agent.chat("what is in a.txt?")
    merged = [item for n, item in enumerate(seen) if n == 0 or item != seen[n - 1]]
    kinds = [item[0] for item in merged if item[0] != "delta"]
    assert kinds == [
        *("step", "writes", "interim", "tool.started", "start"),
        *("tool.completed", "complete", "step"),
    ]
    assert ("tool.started", "a.txt") in seen
    assert "".join(t for k, *r in seen if k == "delta" for t in r if t) == "I look.It says hello."
    assert seen[-1] == ("delta", None)


def test_a_callback_that_fails_changes_nothing(programs: Programs) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    agent = programs.agent(says("fine"), stream_delta_callback=broken, event_callback=broken)
    assert agent.chat("hi") == "fine"


def touch(name: str) -> str:
    """A command that asks for approval, because its text does not tell where it writes."""
    return f"touch ${{PLACE:-.}}/{name}"


def test_an_approval_is_asked_and_holds_as_answered(programs: Programs) -> None:
    asked: list[tuple[str, str]] = []

    def approve(command: str, why: str, *, allow_permanent: bool = True) -> str:
        asked.append((command, why))
        return "session" if "yes" in command else "deny"

    agent = programs.agent(
        calls_many(("terminal", {"command": touch("yes")}), ("terminal", {"command": touch("no")})),
        says("ok"),
        approval_callback=approve,
    )
    agent.chat("touch them")
    assert [command for command, _ in asked] == [touch("yes"), touch("no")]
    assert (programs.folder / "yes").exists()
    assert not (programs.folder / "no").exists()


def test_a_question_gets_the_callbacks_answer(programs: Programs) -> None:
    agent = programs.agent(
        calls("clarify", question="Tea?", choices=["yes", "no"]),
        says("ok"),
        clarify_callback=lambda question, choices: f"{question} {choices[0]}",
    )
    result = agent.run_conversation("ask me")
    assert "Tea? yes" in result["messages"][2]["content"]


def test_without_callbacks_nobody_is_there_to_approve(programs: Programs) -> None:
    agent = programs.agent(calls("terminal", command=touch("no")), says("ok"))
    result = agent.run_conversation("touch it")
    assert "nobody is here" in result["messages"][2]["content"]


def test_a_given_history_begins_a_new_session(programs: Programs) -> None:
    agent = programs.agent(says("first"), says("second"))
    agent.chat("hi")
    first = agent.session_id
    result = agent.run_conversation(
        "go on",
        conversation_history=[
            {"role": "system", "content": "ignored"},
            {"role": "user", "content": "earlier"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "function": {"name": "todo", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "todo", "content": "nothing"},
            {"role": "assistant", "content": "I see."},
        ],
    )
    assert agent.session_id != first
    assert [m["role"] for m in result["messages"]] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant"),
    ]


def test_a_session_is_taken_up_by_its_id(programs: Programs) -> None:
    agent = programs.agent(says("one"), says("two"))
    agent.chat("hi")
    session_id = agent.session_id
    agent.close()
    again = programs.agent(session_id=session_id)
    assert len(again.run_conversation("more")["messages"]) == 4


def test_an_interrupt_from_another_thread_ends_the_turn(programs: Programs) -> None:
    agent = programs.agent(hangs(), says("back"))
    results: list[dict[str, Any]] = []
    worker = threading.Thread(target=lambda: results.append(agent.run_conversation("wait")))
    worker.start()
    programs.server.received.wait(1, timeout=60)
    agent.interrupt("never mind")
    worker.join(60)
    assert results[0]["interrupted"]
    assert results[0]["interrupt_message"] == "never mind"
    assert agent.chat("hello?") == "back"


def test_an_interrupted_answer_stays_in_the_conversation(programs: Programs) -> None:
    agent = programs.agent(hangs(says("one two three four"), after_chunks=2), says("five"))
    results: list[dict[str, Any]] = []
    heard = threading.Event()
    listener = functools.partial(agent.run_conversation, stream_callback=lambda _: heard.set())
    worker = threading.Thread(target=lambda: results.append(listener("count")))
    worker.start()
    assert heard.wait(60)
    agent.interrupt()
    worker.join(60)
    seen = results[0]["final_response"]
    assert results[0]["interrupted"] and seen and "one two three four".startswith(seen)
    messages = agent.run_conversation("more")["messages"]
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "count"), ("assistant", seen), ("user", "more"), ("assistant", "five"),
    ]  # fmt: skip
    assert messages[1]["finish_reason"] == "interrupted"


def test_another_model_goes_on_where_the_chosen_one_cannot(programs: Programs) -> None:
    spare = {"provider": "custom", "model": "spare", "base_url": f"{programs.server.url}/v1"}
    agent = programs.agent(fails(404), says("I do."), fallback_model=spare, quiet_mode=True)
    result = agent.run_conversation("who answers?")
    assert (result["final_response"], result["model"]) == ("I do.", "spare")


def test_memory_is_left_out_and_the_session_knows_its_id(programs: Programs) -> None:
    agent = programs.agent(says("yes"), skip_memory=True, pass_session_id=True)
    agent.chat("do you remember?")
    body = programs.server.requests[0].body
    assert "memory" not in [tool["function"]["name"] for tool in body["tools"]]
    assert agent.session_id is not None
    assert agent.session_id in str(body["messages"][0])


def test_what_is_not_chosen_is_left_to_the_settings() -> None:
    names = dict.fromkeys((*SETTINGS, "reasoning_config", "fallback_model", "yolo", "skip_memory"))
    assert settings_of(names) == {}
    some = names | {"providers_order": ("a", "b"), "checkpoints_enabled": False, "yolo": True}
    assert settings_of(some) == {
        "provider_routing.order": ["a", "b"],
        "checkpoints.enabled": False,
        "approvals.mode": "off",
    }

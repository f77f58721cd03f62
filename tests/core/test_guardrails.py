"""Circles are noticed, work that repeats is left alone."""

from __future__ import annotations

from hermes.core.guardrails import LOOP_CALLS, Guardrails, LoopWatch
from hermes.core.messages import Text, ToolCall, ToolResult


def call(name: str = "read_file", **arguments: object) -> ToolCall:
    return ToolCall(id="c", name=name, arguments=arguments)


def result(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult(call_id="c", name="t", parts=(Text(text=text),), failed=failed)


STRICT = Guardrails(hard_stop_enabled=True)


def test_an_identical_failing_call_is_warned_refused_and_then_ends_the_turn() -> None:
    watch = LoopWatch(STRICT)
    failing, failed = call(path="missing"), result("no", failed=True)
    assert watch.observe(failing, failed, 0) == ""
    assert "failed 2 times" in watch.observe(failing, failed, 0)
    assert watch.refusal(failing) == ""
    watch.observe(failing, failed, 0)
    for times in (3, 4):
        assert watch.verdict == ""
        refusal = watch.refusal(failing)
        assert f"has failed {times} times" in refusal
        watch.observe(failing, result(refusal, failed=True), 0)
    assert "5 times" in watch.verdict


def test_without_hard_stops_nothing_ends_the_turn() -> None:
    watch = LoopWatch(Guardrails())
    for _ in range(40):
        watch.observe(call(path="a"), result("same"), 0)
        watch.observe(call(path="missing"), result("no", failed=True), 0)
    assert watch.verdict == ""


def test_the_same_answer_of_an_idempotent_call_is_warned_about_the_second_time() -> None:
    watch = LoopWatch(STRICT, lambda name: name == "read_file")
    words = [watch.observe(call(path="a"), result("same"), 0) for _ in range(5)]
    assert [bool(word) for word in words] == [False, True, True, True, True]
    assert watch.verdict == "read_file gave the same answer 5 times"
    other = LoopWatch(STRICT, lambda name: name == "read_file")
    assert not any(other.observe(call("terminal"), result(""), 0) for _ in range(5))
    assert other.verdict == ""


def test_a_refused_call_is_no_failure_of_its_tool() -> None:
    watch = LoopWatch(Guardrails(hard_stop_enabled=True, stop_same_failure=99))
    for _ in range(10):
        watch.observe(call(path="missing"), result("no", failed=True), 0)
    assert watch.verdict == ""


def test_a_success_clears_earlier_failures() -> None:
    watch = LoopWatch(Guardrails())
    for _ in range(2):
        watch.observe(call(), result("no", failed=True), 0)
    watch.observe(call(), result("yes"), 0)
    assert watch.refusal(call()) == ""
    assert watch.observe(call(), result("no", failed=True), 0) == ""


def test_short_patterns_of_quick_calls_end_the_turn_within_twelve_calls() -> None:
    for length in range(1, 6):
        watch = LoopWatch(Guardrails(hard_stop_enabled=True, stop_same_answer=99))
        for step in range(LOOP_CALLS):
            assert watch.verdict == "", (length, step)
            watch.observe(call(n=step % length), result(f"answer {step % length}"), 0)
        assert watch.verdict != "", length


def test_polling_that_waits_between_looks_is_never_a_loop() -> None:
    watch = LoopWatch(STRICT)
    for _ in range(60):
        watch.observe(call("terminal", command="sleep 5"), result(""), 5.0)
        watch.observe(call("process", action="poll"), result("still running"), 0)
    assert watch.verdict == ""


def test_a_batch_over_many_files_is_never_a_loop() -> None:
    watch = LoopWatch(STRICT)
    for number in range(200):
        watch.observe(call(path=f"file{number}"), result("same header everywhere"), 0)
        watch.observe(call("write_file", path=f"file{number}"), result("written"), 0)
    assert watch.verdict == ""


def test_the_strict_settings_stop_a_tool_that_keeps_failing() -> None:
    watch = LoopWatch(Guardrails(hard_stop_enabled=True))
    for number in range(8):
        watch.observe(call(n=number), result("no", failed=True), 0)
    assert watch.verdict == "read_file failed 8 times in a row"

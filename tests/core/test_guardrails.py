"""Circles are noticed, work that repeats is left alone."""

from __future__ import annotations

from hermes.core.guardrails import LOOP_CALLS, Guardrails, LoopWatch
from hermes.core.messages import Text, ToolCall, ToolResult


def call(name: str = "read_file", **arguments: object) -> ToolCall:
    return ToolCall(id="c", name=name, arguments=arguments)


def result(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult(call_id="c", name="t", parts=(Text(text=text),), failed=failed)


def test_an_identical_failing_call_is_warned_refused_and_then_ends_the_turn() -> None:
    watch = LoopWatch(Guardrails())
    failing = call(path="missing")
    assert watch.observe(failing, result("no", failed=True), 0) == ""
    assert "failed 2 times" in watch.observe(failing, result("no", failed=True), 0)
    assert watch.refusal(failing) == ""
    watch.observe(failing, result("no", failed=True), 0)
    assert watch.refusal(failing).startswith("Refused")
    assert watch.verdict == ""
    assert watch.refusal(failing).startswith("Refused")
    assert "5 times" in watch.verdict


def test_a_success_clears_earlier_failures() -> None:
    watch = LoopWatch(Guardrails())
    for _ in range(2):
        watch.observe(call(), result("no", failed=True), 0)
    watch.observe(call(), result("yes"), 0)
    assert watch.refusal(call()) == ""
    assert watch.observe(call(), result("no", failed=True), 0) == ""


def test_short_patterns_of_quick_calls_end_the_turn_within_twelve_calls() -> None:
    for length in range(1, 6):
        watch = LoopWatch(Guardrails())
        for step in range(LOOP_CALLS):
            assert watch.verdict == "", (length, step)
            watch.observe(call(n=step % length), result(f"answer {step % length}"), 0)
        assert watch.verdict != "", length


def test_polling_that_waits_between_looks_is_never_a_loop() -> None:
    watch = LoopWatch(Guardrails())
    for _ in range(60):
        watch.observe(call("terminal", command="sleep 5"), result(""), 5.0)
        watch.observe(call("process", action="poll"), result("still running"), 0)
    assert watch.verdict == ""


def test_a_batch_over_many_files_is_never_a_loop() -> None:
    watch = LoopWatch(Guardrails())
    for number in range(200):
        watch.observe(call(path=f"file{number}"), result("same header everywhere"), 0)
        watch.observe(call("write_file", path=f"file{number}"), result("written"), 0)
    assert watch.verdict == ""


def test_the_strict_settings_stop_a_tool_that_keeps_failing() -> None:
    watch = LoopWatch(Guardrails(hard_stop_enabled=True))
    for number in range(8):
        watch.observe(call(n=number), result("no", failed=True), 0)
    assert watch.verdict == "read_file failed 8 times in a row"

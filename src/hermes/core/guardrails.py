"""Detects loops in a turn: warns the model, refuses repeated calls, ends the turn."""

from __future__ import annotations

from collections import Counter

from hermes.codec.json import encode_sorted
from hermes.codec.values import Value
from hermes.core.messages import ToolCall, ToolResult

# So many quick calls that repeat a pattern of at most this length, results included, are a loop.
LOOP_CALLS = 12
LONGEST_PATTERN = 5
# A call that takes this long waits for something, so what follows is not a quick repeat.
WAITING_SECONDS = 1.0


class Guardrails(Value):
    """After how many repeats in one turn to warn and to stop. Without `hard_stop_enabled`, only two
    cases end a turn: an identical call that failed, was refused and came again, or a short pattern
    of calls and results that keeps repeating."""

    hard_stop_enabled: bool = False
    warn_same_failure: int = 2
    warn_tool_failure: int = 3
    warn_same_answer: int = 2
    refuse_same_failure: int = 3
    stop_same_failure: int = 5
    stop_tool_failure: int = 8
    stop_same_answer: int = 5


class LoopWatch:
    """Watches the calls of one turn. `verdict` says why the turn should end, once it should."""

    def __init__(self, rules: Guardrails) -> None:
        self.verdict = ""
        self._rules = rules
        self._failures: Counter[bytes] = Counter()
        self._tool_failures: Counter[str] = Counter()
        self._answers: dict[bytes, tuple[str, int]] = {}
        self._steps: list[tuple[bytes, str]] = []

    def refusal(self, call: ToolCall) -> str:
        """Why this call is refused without a try, or ""."""
        key = _key(call)
        times = self._failures[key]
        if times < self._rules.refuse_same_failure:
            return ""
        self._failures[key] += 1
        if times + 1 >= self._rules.stop_same_failure:
            self.verdict = f"{call.name} was called {times + 1} times with arguments that fail"
        return (
            f"Refused: this exact call has failed {times} times in this turn. "
            "Change the arguments, try another approach, or say what blocks you."
        )

    def observe(self, call: ToolCall, result: ToolResult, seconds: float) -> str:
        """A warning to add to the result, or ""."""
        key = _key(call)
        self._look_for_pattern(key, result.text, seconds)
        if result.failed:
            return self._after_failure(call, key)
        self._failures.pop(key, None)
        self._tool_failures.pop(call.name, None)
        return self._after_success(call, key, result.text)

    def _after_failure(self, call: ToolCall, key: bytes) -> str:
        self._failures[key] += 1
        self._tool_failures[call.name] += 1
        same, tool = self._failures[key], self._tool_failures[call.name]
        if self._rules.hard_stop_enabled and tool >= self._rules.stop_tool_failure:
            self.verdict = f"{call.name} failed {tool} times in a row"
        if same >= self._rules.warn_same_failure:
            return f"[This exact call has now failed {same} times. Do something different.]"
        if tool >= self._rules.warn_tool_failure:
            return f"[{call.name} has failed {tool} times in a row. Check your assumptions.]"
        return ""

    def _after_success(self, call: ToolCall, key: bytes, text: str) -> str:
        before, times = self._answers.get(key, ("", 0))
        times = times + 1 if text == before else 1
        self._answers[key] = (text, times)
        if self._rules.hard_stop_enabled and times >= self._rules.stop_same_answer:
            self.verdict = f"{call.name} gave the same answer {times} times"
        if times > self._rules.warn_same_answer:
            return f"[Same call, same answer, {times} times now. Use what you have.]"
        return ""

    def _look_for_pattern(self, key: bytes, text: str, seconds: float) -> None:
        if seconds >= WAITING_SECONDS:
            self._steps.clear()
            return
        self._steps = [*self._steps[1 - LOOP_CALLS :], (key, text)]
        if len(self._steps) < LOOP_CALLS:
            return
        for length in range(1, LONGEST_PATTERN + 1):
            if self._steps[length:] == self._steps[:-length]:
                self.verdict = f"the same {length} call(s) and results kept repeating"
                return


def _key(call: ToolCall) -> bytes:
    return call.name.encode() + encode_sorted(call.arguments)

"""Guardrails of a turn: loop detection, and limits for large tool results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from zlib import crc32

from hermes.codec.json import encode_sorted
from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import Value, replace
from hermes.core.errors import ToolError
from hermes.core.messages import Image, Text, ToolCall, ToolResult
from hermes.core.ports import Workspace
from hermes.core.tools import ToolSettings

# So many quick calls that repeat a pattern of at most this length, results included, are a loop.
LOOP_CALLS = 12
LONGEST_PATTERN = 5
# A call that takes this long waits for something, so what follows is not a quick repeat.
WAITING_SECONDS = 1.0


class Guardrails(Value):
    """How many repeats in one turn lead to a warning, and with `hard_stop_enabled` end it."""

    hard_stop_enabled: bool = False
    warn_same_failure: int = 2
    warn_tool_failure: int = 3
    warn_same_answer: int = 2
    refuse_same_failure: int = 3
    stop_same_failure: int = 5
    stop_tool_failure: int = 8
    stop_same_answer: int = 5


class LoopWatch:
    """Watches the calls of one turn. When the turn should end, `verdict` says why.
    Results of calls for which `is_idempotent` is false may repeat: a command can change
    something and print nothing."""

    def __init__(
        self, rules: Guardrails, is_idempotent: Callable[[str], bool] = lambda _: True
    ) -> None:
        self.verdict = ""
        # How many calls were refused.
        self.refused = 0
        self._rules = rules
        self._is_idempotent = is_idempotent
        self._failures: Counter[bytes] = Counter()
        self._tool_failures: Counter[str] = Counter()
        self._answers: dict[bytes, tuple[str, int]] = {}
        self._steps: list[tuple[bytes, str]] = []

    def refusal(self, call: ToolCall) -> str:
        """Return why this call is refused without a try, or ""."""
        times = self._failures[_key(call)]
        if times < self._rules.refuse_same_failure:
            return ""
        self.refused += 1
        return (
            f"Refused: this exact call has failed {times} times in this turn. "
            "Change the arguments, try another approach, or say what blocks you."
        )

    def observe(self, call: ToolCall, result: ToolResult, seconds: float) -> str:
        """Count a result; a refused call counts as one more failure. Return a warning to add to it,
        or ""."""
        key = _key(call)
        pattern = self._find_pattern(key, result.text, seconds)
        if result.failed:
            return self._after_failure(call, key) or pattern
        self._failures.pop(key, None)
        self._tool_failures.pop(call.name, None)
        return self._after_success(call, key, result.text) or pattern

    def _after_failure(self, call: ToolCall, key: bytes) -> str:
        rules = self._rules
        was_refused = self._failures[key] >= rules.refuse_same_failure
        self._failures[key] += 1
        self._tool_failures[call.name] += not was_refused
        same, tool = self._failures[key], self._tool_failures[call.name]
        if same >= rules.stop_same_failure:
            self._stop(f"{call.name} was called {same} times with arguments that fail")
        elif tool >= rules.stop_tool_failure:
            self._stop(f"{call.name} failed {tool} times in a row")
        if was_refused:
            return ""
        if same >= rules.warn_same_failure:
            return f"[This exact call has now failed {same} times. Do something different.]"
        if tool >= rules.warn_tool_failure:
            return f"[{call.name} has failed {tool} times in a row. Check your assumptions.]"
        return ""

    def _after_success(self, call: ToolCall, key: bytes, text: str) -> str:
        if not self._is_idempotent(call.name):
            return ""
        before, times = self._answers.get(key, ("", 0))
        times = times + 1 if text == before else 1
        self._answers[key] = (text, times)
        if times >= self._rules.stop_same_answer:
            self._stop(f"{call.name} gave the same answer {times} times")
        if times >= self._rules.warn_same_answer:
            return f"[Same call, same answer, {times} times now. Use what you have.]"
        return ""

    def _find_pattern(self, key: bytes, text: str, seconds: float) -> str:
        """Return a warning if the newest calls repeat a short pattern."""
        if seconds >= WAITING_SECONDS:
            self._steps.clear()
            self._answers.clear()
            return ""
        self._steps = [*self._steps[1 - LOOP_CALLS :], (key, text)]
        if len(self._steps) < LOOP_CALLS:
            return ""
        for length in range(1, LONGEST_PATTERN + 1):
            if self._steps[length:] == self._steps[:-length]:
                self._stop(f"the same {length} call(s) and results kept repeating")
                return "[The same calls and results keep repeating. Answer with what you have.]"
        return ""

    def _stop(self, why: str) -> None:
        if self._rules.hard_stop_enabled:
            self.verdict = why


def _key(call: ToolCall) -> bytes:
    return call.name.encode() + encode_sorted(call.arguments)


RESULT_CHARS = 100_000
TURN_CHARS = 200_000
RESULT_FLOOR = 2_500
TURN_FLOOR = 8_000
READ_FLOOR = 3_000
PREVIEW_CHARS = 1_500


def limit_file_reads(settings: ToolSettings, window: int) -> ToolSettings:
    """Return the settings with at most a fifth of the window for one file read: unlike other
    results, file content is not moved to a file again."""
    most = max(READ_FLOOR, window * CHARS_PER_TOKEN // 5)
    return replace(settings, file_read_max_chars=min(settings.file_read_max_chars, most))


class ResultLimiter:
    """Limits the results of one turn to a share of the window, given in tokens. Once the turn's
    share is used, every longer result is replaced by a preview."""

    def __init__(self, workspace: Workspace, window: int) -> None:
        chars = window * CHARS_PER_TOKEN
        self._workspace = workspace
        self._per_result = max(RESULT_FLOOR, min(RESULT_CHARS, chars * 15 // 100))
        self._per_turn = max(TURN_FLOOR, min(TURN_CHARS, chars * 30 // 100))
        self._used = 0

    def reset(self) -> None:
        """Free the share of the earlier results, because they were compacted."""
        self._used = 0

    async def fit(self, result: ToolResult) -> ToolResult:
        """Return the result, or a preview of it. File content already has a file."""
        size = len(result.text)
        room = min(self._per_result, max(PREVIEW_CHARS, self._per_turn - self._used))
        if size > room and result.name != "read_file":
            result = await self._move_to_file(result)
        self._used += len(result.text)
        return result

    async def fit_inner(self, result: ToolResult) -> ToolResult:
        """Return the result of an inner call, or a preview of it. The model does not see it, so it
        uses up no share of the window."""
        is_long = len(result.text) > RESULT_CHARS and result.name != "read_file"
        return await self._move_to_file(result) if is_long else result

    async def _move_to_file(self, result: ToolResult) -> ToolResult:
        text = result.text
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in result.call_id)[:60]
        try:
            # Models reuse call ids, so the content is part of the name.
            name = f"results/{safe}-{crc32(text.encode()):08x}.txt"
            path = await self._workspace.scratch(name, text.encode())
        except ToolError:
            # Without a file to write to, keep what fits.
            head = text[: self._per_result // 2]
            cut = f"\n[{len(text) - len(head)} more characters could not be stored.]"
            return replace(result, parts=(Text(text=head + cut),))
        preview = (
            f"<persisted-output>\n{text[:PREVIEW_CHARS]}\n</persisted-output>\n"
            f"[{len(text)} characters in all; the whole text is in {path}: "
            "use read_file with offset and limit, or search_files, to see more.]"
        )
        images = tuple(part for part in result.parts if isinstance(part, Image))
        return replace(
            result,
            parts=(Text(text=preview), *images),
            details={**result.details, "persisted": path},
        )

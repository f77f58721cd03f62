"""Plans: a request as a generator that requests tool calls and receives their results.

Nothing is stored between replies. Each reply runs the plan from its start and feeds it the results
in the transcript, so a plan continues after a crash.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Sequence

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.messages import ToolCall, ToolResult
from hermes.providers.offline.language import DEFAULT, AssistantLanguage, load_language
from hermes.providers.offline.parsing import RequestStep
from hermes.providers.offline.requests import DialogueTurn
from hermes.providers.offline.tool_output import (
    found_count,
    found_files,
    has_succeeded,
    is_unchanged,
    output,
    parse_listing,
)

MAX_ITEMS = 30
MAX_LINES = 60
MAX_LINE_LENGTH = 300

_FENCE_NAMES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "sh": "sh",
    "json": "json",
    "toml": "toml",
    "yaml": "yaml",
    "yml": "yaml",
    "html": "html",
    "css": "css",
    "rs": "rust",
    "go": "go",
    "c": "c",
    "cpp": "cpp",
    "java": "java",
    "sql": "sql",
    "diff": "diff",
}


class Phrasebook:
    """Speaks one language; a missing sentence is taken from English."""

    def __init__(self, language: AssistantLanguage) -> None:
        self.language = language

    def __call__(self, key: str, **facts: object) -> str:
        sentence = self.language.data.say.get(key)
        if sentence is None:
            sentence = load_language(DEFAULT).data.say[key]
        return sentence.format_map(facts)

    def count(self, key: str, number: int, **facts: object) -> str:
        """The sentence `key`.one or `key`.many, with `count`."""
        return self(f"{key}.{'one' if number == 1 else 'many'}", count=number, **facts)

    def bullets(self, items: Sequence[str], *, limit: int = MAX_ITEMS) -> str:
        """Items as a list; those beyond the limit are counted."""
        lines = [f"- {item}" for item in items[:limit]]
        if len(items) > limit:
            lines.append(f"- {self('and_more', count=len(items) - limit)}")
        return "\n".join(lines)

    def block(
        self, lines: Sequence[str], *, name: str = "", limit: int = MAX_LINES, tail: bool = False
    ) -> str:
        """Lines in a code fence. With `tail` the last lines are kept."""
        left_out = len(lines) - limit
        shown = list(lines[-limit:] if tail else lines[:limit])
        fence = _fence(shown)
        body = "\n".join([f"{fence}{name}", *(_cut(line) for line in shown), fence])
        if left_out <= 0:
            return body
        note = self("lines_left_out", count=left_out)
        return f"{note}\n\n{body}" if tail else f"{body}\n\n{note}"


def inline_code(text: str) -> str:
    """Text as inline code, also if it contains backticks."""
    clean = " ".join(_cut(text).split()) or " "
    if "`" not in clean:
        return f"`{clean}`"
    ticks = "``" if "``" not in clean else "```"
    return f"{ticks} {clean} {ticks}"


def fence_name(path: str) -> str:
    """The language name after the fence, for syntax highlighting."""
    return _FENCE_NAMES.get(path.rpartition(".")[2].casefold(), "") if "." in path else ""


def format_size(count: int) -> str:
    """Bytes in human-readable form."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 1000 or unit == "TB":
            break
    return f"{amount:.1f} {unit}" if amount < 100 else f"{amount:.0f} {unit}"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_row(heads), "|" + " --- |" * len(heads), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _fence(lines: Sequence[str]) -> str:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return fence


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 1] + "…"


# Programs whose last argument is the only file they are about.
_ABOUT_ONE_FILE = frozenset({"tail", "head", "wc", "cat", "stat", "file", "python3", "bash"})
_OF_TWO_FILES = frozenset({"mv", "cp"})


class ReferenceContext:
    """What was last shown. `items` is the newest list, `count` its full length."""

    def __init__(self) -> None:
        self.file = ""
        self.folder = ""
        self.items: tuple[str, ...] = ()
        self.count = 0
        self.process = ""
        self.failure: tuple[ToolCall, ToolResult] | None = None
        self.read: tuple[ToolCall, ToolResult] | None = None
        self.shown: dict[tuple[object, object, object], ToolResult] = {}
        self._cwd = ""

    def resolve(self, reference: str) -> str:
        """The path that is meant, or "" if nothing fits."""
        if reference == "it":
            return self.file or (self.items[0] if len(self.items) == 1 else "")
        if reference == "there":
            return self.folder
        place = int(reference)
        index = place - 1 if place > 0 else len(self.items) + place
        return self.items[index] if 0 <= index < len(self.items) else ""

    def note(self, call: ToolCall, result: ToolResult) -> None:
        if not has_succeeded(result):
            self.failure = (call, result)
            if call.name != "terminal":
                return
        match call.name:
            case "read_file":
                self._note_read(call, result)
            case "write_file" | "patch":
                self.file = _text(call.arguments, "path") or self.file
            case "search_files":
                self._note_search(call, result)
            case "terminal":
                self._note_command(_text(call.arguments, "command"), result)
            case "process":
                ended = call.arguments.get("action") == "kill"
                self.process = "" if ended else _text(call.arguments, "session_id") or self.process
            case _:
                pass

    def _note_read(self, call: ToolCall, result: ToolResult) -> None:
        """A result that only says "unchanged" keeps the earlier result with the lines."""
        self.file = _text(call.arguments, "path")
        if not is_unchanged(result):
            wanted = call.arguments
            self.shown[wanted.get("path"), wanted.get("offset"), wanted.get("limit")] = result
            self.read = (call, result)

    def _note_search(self, call: ToolCall, result: ToolResult) -> None:
        files = found_files(result)
        self.folder = _text(call.arguments, "path") or "."
        if files:
            self.items = files
            self.count = max(found_count(result), len(files))
            self.file = files[0]

    def _note_command(self, script: str, result: ToolResult) -> None:
        self.process = _text(result.details, "session_id") or self.process
        self._note_cwd(_text(result.details, "cwd"))
        if not has_succeeded(result):
            return
        words = _words(script)
        flags = "".join(word for word in words[1:] if word.startswith("-"))
        entries = parse_listing(script, output(result))
        if entries and words[0] == "ls" and "d" not in flags:
            paths = [word for word in words[1:] if not word.startswith("-")]
            self.folder = paths[-1] if paths else "."
        if entries:
            self.items = tuple(entry.path for entry in entries)
            self.count = len(entries)
            files = [entry.path for entry in entries if not entry.is_folder]
            ordered = any(flag in flags for flag in "St") or words[0] == "find"
            if files and (ordered or len(entries) == 1):
                self.file = files[0]
        else:
            self._note_program(words)

    def _note_program(self, words: list[str]) -> None:
        if len(words) < 2:
            return
        program, last = words[0], words[-1]
        if (program in _ABOUT_ONE_FILE or program in _OF_TWO_FILES) and not last.startswith("-"):
            self.file = last
        elif program == "mkdir":
            self.folder = last
        elif program == "rm":
            self.file = ""

    def _note_cwd(self, cwd: str) -> None:
        """In another folder, relative names mean other things."""
        if cwd and self._cwd and cwd != self._cwd:
            self.file, self.items, self.folder = "", (), "."
        self._cwd = cwd or self._cwd


def references_after(exchanges: Iterable[DialogueTurn]) -> ReferenceContext:
    focus = ReferenceContext()
    for exchange in exchanges:
        for done in exchange.rounds:
            for call, result in zip(done.calls, done.results, strict=False):
                focus.note(call, result)
    return focus


def _words(script: str) -> list[str]:
    try:
        return shlex.split(script)
    except ValueError:
        return []


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


class CallRequest(Value):
    """A tool call requested by a plan."""

    name: str
    arguments: JsonObject


class StepOutcome(Value):
    """The answer of a step. A failed step ends the whole request."""

    text: str
    failed: bool = False


CallRequests = tuple[CallRequest, ...]
Results = tuple[ToolResult, ...]
Steps = Generator[CallRequests, Results, StepOutcome]


class StepTask:
    """One step to do, with everything known from before."""

    def __init__(
        self,
        intent: RequestStep,
        voice: Phrasebook,
        focus: Callable[[], ReferenceContext],
        earlier: tuple[DialogueTurn, ...],
        tools: frozenset[str],
    ) -> None:
        self.intent = intent
        self.say = voice
        self._focus = focus
        self.earlier = earlier
        self.tools = tools

    @property
    def focus(self) -> ReferenceContext:
        """What was last shown, including the results of this request."""
        return self._focus()

    def slot(self, name: str, default: str = "") -> str:
        return self.intent.slots.get(name, default)

    def has(self, name: str) -> bool:
        return name in self.intent.slots

    @property
    def path(self) -> str:
        return self.slot("path", ".")

    @property
    def place(self) -> str:
        """The folder of a plan, for display."""
        return self.say("this_folder") if self.path == "." else inline_code(self.path)

    def number(self, name: str, default: int) -> int:
        value = self.slot(name)
        return int(value) if value.isdigit() else default

    def with_slot(self, name: str, value: str) -> StepTask:
        slots = {**self.intent.slots, name: value}
        intent = replace(self.intent, slots=slots)
        return StepTask(intent, self.say, self._focus, self.earlier, self.tools)

    def answer(self, key: str, **facts: object) -> StepOutcome:
        return StepOutcome(text=self.say(key, **facts))

    def fail(self, key: str, **facts: object) -> StepOutcome:
        return StepOutcome(text=self.say(key, **facts), failed=True)


Plan = Callable[[StepTask], Steps]


def call(name: str, **arguments: object) -> Generator[CallRequests, Results, ToolResult]:
    """Requests one call and returns its result."""
    (result,) = yield (CallRequest(name=name, arguments=arguments),)
    return result


def terminal(script: str) -> Generator[CallRequests, Results, ToolResult]:
    return (yield from call("terminal", command=script))


class CallFailed(Exception):
    """Ends a step with the explanation of a failed call."""

    def __init__(self, result: ToolResult, script: str = "") -> None:
        super().__init__(script)
        self.result = result
        self.script = script


def checked_call(name: str, **arguments: object) -> Generator[CallRequests, Results, ToolResult]:
    """Like `call`, but raises CallFailed."""
    result = yield from call(name, **arguments)
    if not has_succeeded(result):
        raise CallFailed(result)
    return result


def run_command(script: str) -> Generator[CallRequests, Results, ToolResult]:
    """Like `terminal`, but raises CallFailed."""
    result = yield from terminal(script)
    if not has_succeeded(result):
        raise CallFailed(result, script)
    return result

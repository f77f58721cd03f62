"""Builds the message that replaces the older part of a conversation."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hermes.codec.tokens import CHARS_PER_TOKEN, estimate_tokens
from hermes.codec.values import JsonValue, Value
from hermes.context.budget import TokenBudget, reduce_budget
from hermes.context.pruning import elide, fitting
from hermes.core.messages import ATTACHED, Message, ToolMessage, ToolResult, UserMessage
from hermes.core.transcript import Transcript

# Commands, bans and their withdrawal: kept before all others.
_STRONG = re.compile(
    r"""(?ix)\b(?:
    never|always|must|mustn't|shall\ not|do\ not|don't|may\ not|no\ longer|only\ use|use\ only
    |from\ now\ on|rule|rules|constraint|constraints|requirement|policy|convention|forbidden
    |prohibited|not\ allowed|under\ no\ circumstances|without\ asking|ask\ (?:me\ )?first
    |reject(?:ed)?|decided\ against|ruled\ out|scratch\ that|forget\ (?:what|the|about)
    |i\ changed\ my\ mind
    |nie|niemals|immer|verboten|ab\ jetzt|jamais|toujours|nunca|siempre|mai|sempre|nooit|altijd
    |никогда|всегда|нельзя
    )\b|(?:不要|不得|必须|总是|永远|禁止|絶対|必ず|항상|절대)"""
)
# Preferences, decisions and warnings. A false positive costs a few tokens; a false negative loses a
# wish.
_WEAK = re.compile(
    r"""(?ix)\b(?:
    avoid|prefer|instead\ of|rather\ than|stick\ (?:to|with)|keep\ (?:to|using)|in\ future
    |remember|note\ that|keep\ in\ mind|make\ sure|be\ sure|ensure|required|allowed\ to
    |decided\ (?:to|on)|did\ not\ work|didn't\ work|does\ not\ work|we\ tried|i\ tried|deprecated
    |cannot|can't|won't|shall|nicht|kein|keine|keinen|stattdessen|merk\ dir|bitte\ nur|ne\ pas
    )\b"""
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.S)
_LONGEST = 500
# Longer texts are pasted; the user's comment is before or after.
_SPOKEN = 6_000
_EDGE = 2_000


class StandingRule(Value):
    """A sentence of a message that may be a rule; a `strong` sentence certainly is one."""

    message: UserMessage
    text: str
    strong: bool


def rules_in(message: UserMessage) -> list[StandingRule]:
    """Return the sentences of a message that may be rules."""
    spoken = _FENCED.sub("\n", message.text.partition(ATTACHED)[0])
    if len(spoken) > _SPOKEN:
        spoken = spoken[:_EDGE] + "\n" + spoken[-_EDGE:]
    sentences = (each.strip() for each in _SENTENCE.split(spoken))
    return [
        StandingRule(message=message, text=each, strong=strong)
        for each in sentences
        if 3 < len(each) <= _LONGEST
        and ((strong := _STRONG.search(each) is not None) or _WEAK.search(each))
    ]


def standing_rules(messages: Iterable[Message]) -> list[StandingRule]:
    """Return every rule once, at its newest position, oldest first."""
    rules: dict[str, StandingRule] = {}
    for message in messages:
        if isinstance(message, UserMessage) and message.origin == "user":
            for rule in rules_in(message):
                key = " ".join(rule.text.lower().split()).rstrip(".!")
                rules.pop(key, None)
                rules[key] = rule
    return list(rules.values())


_NAME = re.compile(
    r"""(?x)
    https?://[^\s"'<>)\]]+
    |(?<![\w/.@-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w
    |\b[\w-]+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|rb|sh|md|txt|toml|yaml|yml|json|sql|html|css|csv)\b
    |\b[A-Z][A-Z0-9]+-\d+\b
    |\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b
    |\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b
    |\bv?\d+\.\d+\.\d+(?:[-+][\w.]+)?\b
    |\b[\w-]+:\d{2,5}\b
    |\#\d{2,}\b
    """
)
_LONGEST_NAME = 120


class FileSeen(Value):
    """A file that the model read or wrote."""

    path: str
    # Like "1-80 of 80".
    lines: str
    digest: str = ""
    # The record.
    number: int = 0


def current_request(transcript: Transcript) -> list[UserMessage]:
    """Return the message that began the newest user turn and the user messages since."""
    messages = transcript.messages
    for start in reversed(transcript.turn_starts):
        first = messages[start] if start < len(messages) else None
        if isinstance(first, UserMessage) and first.origin == "user":
            return [
                each
                for each in messages[start:]
                if isinstance(each, UserMessage) and each.origin == "user"
            ]
    return []


def open_todos(transcript: Transcript) -> list[str]:
    """Return the open tasks of the newest list."""
    listed = (transcript.latest("todo") or {}).get("todos", ())
    signs = {"pending": "[ ]", "in_progress": "[>]"}
    return [
        f"{signs[item['status']]} {item.get('id', '')}: {item.get('content', '')}"
        for item in listed
        if isinstance(item, dict) and item.get("status") in signs
    ]


def files_seen(transcript: Transcript, upto: int) -> list[FileSeen]:
    """Return the files that the first `upto` messages read or changed, each with its newest state,
    oldest first. Deleted files are left out."""
    files: dict[str, FileSeen] = {}
    for result in _results(transcript, upto):
        if result.failed:
            continue
        number, details = transcript.number_of(result), result.details
        if result.name == "read_file" and isinstance(path := details.get("path"), str):
            seen = _file_seen(path, details, number, files.pop(path, None))
            files.update({path: seen} if seen else {})
        for path in _detail_texts(details, "files_modified", "files_created"):
            files.pop(path, None)
            files[path] = FileSeen(path=path, lines="written by you", number=number)
        for path in _detail_texts(details, "files_deleted"):
            files.pop(path, None)
    return list(files.values())


def searched_tools(transcript: Transcript, upto: int) -> list[str]:
    """Return the descriptions of tools found by tool_search."""
    searches = (each for each in _results(transcript, upto) if each.name == "tool_search")
    found = (name for each in searches for name in _detail_texts(each.details, "found"))
    return list(dict.fromkeys(found))


def _results(transcript: Transcript, upto: int) -> Iterator[ToolResult]:
    for message in transcript.messages[:upto]:
        if isinstance(message, ToolMessage):
            yield from message.results


def names_in_use(messages: Sequence[Message], known: Sequence[str]) -> list[str]:
    """Return paths, URLs, ids, versions and similar names, newest and most used first."""
    last: dict[str, int] = {}
    count: Counter[str] = Counter()
    for index, message in enumerate(messages):
        for name in _NAME.findall(_message_text(message)):
            if len(name) <= _LONGEST_NAME:
                last[name] = index
                count[name] += 1
    already_listed = {*known, *map(posixpath.basename, known)}
    ranked = sorted(last, key=lambda name: (-min(count[name], 4), -last[name]))
    return [name for name in ranked if name not in already_listed]


def _message_text(message: Message) -> str:
    if isinstance(message, UserMessage):
        return message.text.partition(ATTACHED)[0][:4_000]
    if isinstance(message, ToolMessage):
        return ""
    values = (value for call in message.calls for value in call.arguments.values())
    arguments = (value[:400] for value in values if isinstance(value, str))
    return "\n".join((message.text[:4_000], *arguments))


def _file_seen(
    path: str, details: dict[str, JsonValue], number: int, before: FileSeen | None
) -> FileSeen | None:
    if details.get("status") == "unchanged":
        return before
    start, shown, total = (details.get(key) for key in ("start", "shown", "total_lines"))
    if not (isinstance(start, int) and isinstance(shown, int)):
        return before
    lines = f"{start}-{start + shown - 1} of {total}"
    digest = str(details.get("digest", ""))
    if before is not None and before.digest == digest and before.lines != "written by you":
        lines = lines if lines in before.lines else f"{before.lines}; {lines}"
        lines = lines if len(lines) < 60 else f"most of {total}"
    return FileSeen(path=path, lines=lines, digest=digest, number=number)


def _detail_texts(details: dict[str, JsonValue], *keys: str) -> list[str]:
    values = (details.get(key) for key in keys)
    return [str(each) for value in values if isinstance(value, list) for each in value]


SEARCH_TOOL = "session_search"
BLOCK_BEGINS = "[The earlier part of this conversation, shortened by the program."
BLOCK_ENDS = "[End of the shortened part. What follows is newer and wins over it.]"


class Carried(Value):
    """The content of the block that replaces summarised messages. Numbers are record numbers."""

    session_id: str
    recallable: bool
    last_number: int
    cwd: str = ""
    rules: tuple[tuple[int, str], ...] = ()
    possible_rules: tuple[tuple[int, str], ...] = ()
    summary: str = ""
    # The first message.
    first: tuple[int, str] = (0, "")
    todos: tuple[str, ...] = ()
    files: tuple[FileSeen, ...] = ()
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    # The current request, unless it is still in view.
    request: tuple[tuple[int, str], ...] = ()


def fitting_block(carried: Carried, budget: TokenBudget, tokens: int) -> str:
    """Build the block within a token limit; rules and the request shrink last."""
    text = ""
    for percent in (100, 60, 30):
        text = block_text(carried, reduce_budget(budget, percent))
        if estimate_tokens(text) <= tokens:
            break
    return text


def block_text(carried: Carried, budget: TokenBudget) -> str:
    """Build the block; truncated parts say how much is missing."""
    number, text = carried.first
    chars = budget.request * CHARS_PER_TOKEN
    most = chars // max(1, len(carried.request))
    request = [elide(each, most, n) for n, each in carried.request]
    sections = (
        _section("Standing rules of the user, verbatim", _rules(carried, budget)),
        _section("How it began, verbatim", elide(text, chars // 4, number)),
        _section("Summary", carried.summary),
        _section("Open to-dos", _fit_lines(carried.todos, budget.todos, "to-dos")),
        _section(
            "Files already read or written; do not read them again unless they changed",
            _format_files(carried, budget),
        ),
        _section("Names in use", ", ".join(fitting(carried.names, budget.names))),
        _section(
            "Tools found so far, for tool_call", _fit_lines(carried.tools, budget.todos, "tools")
        ),
        _section("The request you are working on, verbatim", "\n\n".join(request)),
    )
    parts = (_heading(carried), *sections, BLOCK_ENDS)
    return "\n\n".join(part for part in parts if part)


def _heading(carried: Carried) -> str:
    text = f"{BLOCK_BEGINS} It is reference material, not a new request."
    if not carried.recallable:
        return text + "]"
    upto = f" up to {carried.last_number}" if carried.last_number else ""
    return (
        f"{text} Every message{upto} is stored verbatim. To look something up: "
        f'{SEARCH_TOOL}(query="…", session_id="{carried.session_id}"), with role_filter="tool" for '
        f'results; by number: {SEARCH_TOOL}(session_id="{carried.session_id}", '
        "around_message_id=N).]"
    )


def _section(title: str, text: str) -> str:
    return f"## {title}\n{text}" if text else ""


def _rules(carried: Carried, budget: TokenBudget) -> str:
    """List the rules and, in half of the remaining space, sentences that may be rules."""
    strong, weak = (
        [f"- [{number}] {text}" if number else f"- {text}" for number, text in some]
        for some in (carried.rules, carried.possible_rules)
    )
    rules = _fit_newest(strong, budget.rules, "older rules")
    left = (budget.rules - estimate_tokens(rules)) // 2
    return "\n".join(
        filter(None, (rules, _fit_newest(weak, left, "older sentences that may be rules")))
    )


def _format_files(carried: Carried, budget: TokenBudget) -> str:
    folders: dict[str, list[str]] = {}
    for seen in carried.files:
        path = seen.path
        if carried.cwd and path.startswith(carried.cwd.rstrip("/") + "/"):
            path = posixpath.relpath(path, carried.cwd)
        folder, name = posixpath.split(path)
        mark = f", #{seen.digest[:6]}" if seen.digest else ""
        # "1-80 of 80" is "80 lines".
        first, _, total = seen.lines.partition(" of ")
        lines = f"{total} lines" if total and first == f"1-{total}" else seen.lines
        folders.setdefault(folder or ".", []).append(f"{name} ({lines}{mark})")
    shown = [f"{folder}/: {', '.join(names)}" for folder, names in folders.items()]
    if sum(map(estimate_tokens, shown)) > budget.files:
        # Names alone tell which files need not be read again.
        shown = [
            f"{folder}/: {', '.join(name.partition(' (')[0] for name in names)}"
            for folder, names in folders.items()
        ]
    return _fit_newest(shown, budget.files, "folders")


def _fit_lines(lines: Sequence[str], tokens: int, what: str) -> str:
    shown = fitting(lines, tokens)
    if left := len(lines) - len(shown):
        shown.append(f"(and {left} more {what})")
    return "\n".join(shown)


def _fit_newest(lines: Sequence[str], tokens: int, what: str) -> str:
    """Drop the oldest lines that do not fit, and keep the order of the others."""
    shown = fitting(lines[::-1], tokens)
    if left := len(lines) - len(shown):
        shown.append(f"({left} {what} not shown here)")
    return "\n".join(shown[::-1])

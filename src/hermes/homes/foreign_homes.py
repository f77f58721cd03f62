"""Reads the homes and the sessions of other agents."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode, plain
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.environment import is_secret_name, read_env_file
from hermes.config.home import Home
from hermes.config.yaml_parser import BadYaml, parse_yaml
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    Record,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
    TitleChanged,
    ToolFinished,
)
from hermes.core.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user_says,
)
from hermes.homes.archive_files import text_of
from hermes.journal.body_templates import CURRENT, KINDS
from hermes.journal.export import FORMAT, EventLine, SessionLine, conversation_of
from hermes.journal.import_ import SAFE_ID
from hermes.memory.entries import split_entries


class ForeignHome(Value):
    """The content of another program's home."""

    root: Path
    # With the keys of Hermes.
    settings: JsonObject = {}
    secrets: dict[str, str] = {}
    soul: str = ""
    # Entries by target file.
    memories: dict[Literal["memory", "user"], tuple[str, ...]] = {}
    # Folders with a SKILL.md.
    skills: tuple[Path, ...] = ()
    # Yields journal export lines, oldest first.
    sessions: Callable[[], Iterator[bytes]] | None = None
    problems: tuple[str, ...] = ()


def skill_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders with a SKILL.md; hidden folders and symbolic links are skipped."""
    if not root.is_dir():
        return ()
    found = (path.parent for path in sorted(root.rglob("SKILL.md")) if not path.is_symlink())
    return tuple(
        folder
        for folder in found
        if not any(part.startswith(".") for part in folder.relative_to(root).parts)
    )


STATE = "state.db"
_SIGNS = (STATE, "config.yaml", "memories", "skills", "SOUL.md")


def read_hermes_agent(root: Path) -> ForeignHome:
    """Read a home of Hermes Agent. Raises NotFound when the folder is not such a home."""
    if not any((root / name).exists() for name in _SIGNS):
        raise NotFound(
            f"{root} is not a home of Hermes Agent (it has none of {', '.join(_SIGNS)}); name "
            "another folder."
        )
    settings, problems = _read_config(root / "config.yaml", parse_yaml)
    # The version number belongs to the other program's schema.
    settings = {name: value for name, value in settings.items() if name != "_config_version"}
    env = read_env_file(Home(root))
    state = root / STATE
    return ForeignHome(
        root=root,
        settings=settings,
        secrets={name: value for name, value in env.variables.items() if is_secret_name(name)},
        soul=text_of(root / "SOUL.md"),
        memories={
            "memory": split_entries(text_of(root / "memories" / "MEMORY.md")),
            "user": split_entries(text_of(root / "memories" / "USER.md")),
        },
        skills=skill_folders(root / "skills"),
        sessions=partial(session_lines, state) if state.exists() else None,
        problems=problems,
    )


CONFIG = "openclaw.json"
_OPENCLAW_SIGNS = (CONFIG, "workspace")


def read_openclaw(root: Path) -> ForeignHome:
    """Read a home of OpenClaw. Raises NotFound when the folder is not such a home."""
    if not any((root / name).exists() for name in _OPENCLAW_SIGNS):
        signs = ", ".join(_OPENCLAW_SIGNS)
        raise NotFound(
            f"{root} is not a folder of OpenClaw (it has none of {signs}); name another."
        )
    config, problems = _read_config(root / CONFIG, lambda data: decode(dict, data))
    defaults = get_path(config, "agents", "defaults")
    workspace, named = root / "workspace", get_path(defaults, "workspace")
    if isinstance(named, str) and named and Path(named).expanduser().is_dir():
        workspace = Path(named).expanduser()
    model = get_path(defaults, "model")
    model = get_path(model, "primary") if isinstance(model, dict) else model
    variables = get_path(config, "env", "vars") or get_path(config, "env")
    env: JsonObject = dict(variables) if isinstance(variables, dict) else {}
    env |= read_env_file(Home(root)).variables
    return ForeignHome(
        root=root,
        settings={"model": {"default": model}} if isinstance(model, str) and model else {},
        secrets={
            name: value
            for name, value in env.items()
            if isinstance(value, str) and is_secret_name(name)
        },
        soul=text_of(workspace / "SOUL.md"),
        memories={
            "memory": paragraphs(text_of(workspace / "MEMORY.md")),
            "user": paragraphs(text_of(workspace / "USER.md")),
        },
        skills=(*skill_folders(workspace / "skills"), *skill_folders(root / "skills")),
        problems=problems,
    )


def _read_config(
    path: Path, parse: Callable[[bytes], JsonObject]
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings of the other program, and why they cannot be read."""
    if not path.exists():
        return {}, ()
    try:
        return parse(path.read_bytes()), ()
    except (OSError, BadYaml, DecodeError) as error:
        return {}, (f"{path} cannot be read ({error}); its settings are skipped.",)


def paragraphs(text: str) -> tuple[str, ...]:
    """Split Markdown notes into entries: each list item, and each paragraph except headings."""
    entries: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if not line.lstrip().startswith("#")]
        entry: list[str] = []
        for line in lines:
            if match := re.match(r"\s*[-*]\s+(.*)", line):
                entries += [" ".join(entry)] if entry else []
                entry = [match[1].strip()]
            elif line.strip():
                entry.append(line.strip())
        entries += [" ".join(entry)] if entry else []
    return tuple(entry for entry in entries if entry)


Row = Mapping[str, JsonValue]
EMPTY_TEXT = "(nothing)"


def session_lines(path: Path) -> Iterator[bytes]:
    """Yield one export line per session, oldest first. The file is opened read-only. Raises
    UsageError if it is not such a database."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            db.row_factory = sqlite3.Row
            for row in db.execute("SELECT * FROM sessions ORDER BY started_at, id"):
                yield encode(_line(db, dict(row)))
    except sqlite3.Error as error:
        raise UsageError(
            f"The sessions in {path} cannot be read ({error}); check the file."
        ) from error


def _line(db: sqlite3.Connection, session: Row) -> SessionLine:
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    rows: list[Row] = [dict(row) for row in db.execute(query, (session["id"],))]
    visible = [row for row in rows if row.get("active", 1) or row.get("compacted")]
    events_at = list(_events(session, visible))
    original = _text(session["id"])
    name = original if SAFE_ID.fullmatch(original) else f"import_{original.encode().hex()[:32]}"
    records, events = [], []
    for n, (at, event) in enumerate(events_at, start=1):
        kind = KINDS[type(event)]
        records.append(Record(session_id=name, n=n, turn_id="", at=at, event=event))
        events.append(EventLine(n=n, at=at, kind=kind, version=CURRENT[kind], body=plain(event)))
    messages = conversation_of(records)
    return SessionLine(id=name, format=FORMAT, events=tuple(events), messages=messages)


def _events(session: Row, rows: list[Row]) -> Iterator[tuple[float, DurableEvent]]:
    start = _number(session.get("started_at"))
    source, cwd = _text(session.get("source")) or "import", _text(session.get("cwd"))
    # Resuming uses the default model: the original one may be unknown here.
    yield start, SessionOpened(source=source, cwd=cwd, model="", provider="", system="")
    if title := _text(session.get("title")):
        yield start, TitleChanged(title=title)
    at = start
    for at, event in _conversation(session, rows):
        yield at, event
    ended = session.get("ended_at")
    yield max(at, _number(ended) if ended else at), SessionEnded(reason="imported")


def _conversation(session: Row, rows: list[Row]) -> Iterator[tuple[float, DurableEvent]]:
    """Yield the messages of one session. Calls get new ids, as the original ones need not be
    unique. Calls without a result and results without a call are dropped: no model accepts them."""
    names: dict[str, tuple[str, str]] = {}
    for index, row in enumerate(rows):
        at = _number(row.get("timestamp"))
        match row.get("role"):
            case "user":
                message = user_says(_content(row) or EMPTY_TEXT)
                yield at, MessageReceived(message=message, past=True)
            case "assistant":
                results = takewhile(lambda each: each.get("role") == "tool", rows[index + 1 :])
                answered = {_text(each.get("tool_call_id")) for each in results}
                names = {}
                calls: list[ToolCall] = []
                for number, raw in enumerate(_calls(row)):
                    call_id, name = _text(raw.get("id")), _text(get_path(raw, "function", "name"))
                    if call_id in answered and name:
                        own = f"call_{index}_{number}"
                        names[call_id] = own, name
                        calls.append(ToolCall(id=own, name=name, arguments=_arguments(raw)))
                yield at, _reply(session, row, calls)
            case "tool":
                if (found := names.pop(_text(row.get("tool_call_id")), None)) is not None:
                    call_id, name = found
                    parts = (Text(text=_content(row) or EMPTY_TEXT),)
                    # The origin is unknown, so results count as external content.
                    result = ToolResult(call_id=call_id, name=name, parts=parts, origin="import")
                    yield at, ToolFinished(result=result)


def _reply(session: Row, row: Row, calls: list[ToolCall]) -> ReplyAdded:
    reasoning = _text(row.get("reasoning")) or _text(row.get("reasoning_content"))
    text = _content(row)
    parts = (
        *((Reasoning(text=reasoning),) if reasoning else ()),
        *((Text(text=text or EMPTY_TEXT),) if text or not calls else ()),
        *calls,
    )
    return ReplyAdded(
        message=AssistantMessage(parts=parts, stop="calls" if calls else "done"),
        usage=Usage(),
        model=_text(session.get("model")),
        provider=_text(session.get("billing_provider")),
    )


def _content(row: Row) -> str:
    """Return the text of a message. A message with images is a JSON list after a short prefix."""
    text = _text(row.get("content"))
    start = text.find("[{")
    if 0 <= start <= 40 and '"type"' in text:
        try:
            parts = decode(list[JsonObject], text[start:].encode())
        except DecodeError:
            return text
        return "\n".join(_text(part.get("text")) or "[picture]" for part in parts)
    return text


def _calls(row: Row) -> list[JsonObject]:
    try:
        return decode(list[JsonObject], (_text(row.get("tool_calls")) or "[]").encode())
    except DecodeError:
        return []


def _arguments(raw: JsonObject) -> JsonObject:
    arguments = get_path(raw, "function", "arguments")
    if isinstance(arguments, dict):
        return arguments
    try:
        return decode(JsonObject, _text(arguments).encode())
    except DecodeError:
        return {}


def get_path(value: JsonValue, *names: str) -> JsonValue:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: JsonValue) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0

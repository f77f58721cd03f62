"""Exports sessions as HTML pages, or only the user's messages as JSON lines."""

from __future__ import annotations

import html
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from hermes.codec.json import encode
from hermes.journal.export import ExportedMessage, conversation_of
from hermes.journal.listing import EVERYTHING

if TYPE_CHECKING:
    from hermes.journal.archive import SessionArchive
    from hermes.journal.journal import SqliteJournal

Redact = Callable[[str], str]

# The content security policy prevents the page from loading or running anything.
_PAGE = """<!doctype html>
<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em }}
section {{ border-left: 4px solid #999; margin: 1em 0; padding: 0 1em }}
section.user {{ border-color: #2a6 }} section.assistant {{ border-color: #26a }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .3em 0 }}
section.tool pre {{ font: 13px/1.4 monospace; max-height: 20em; overflow: auto }}
h2 {{ font-size: .8em; color: #777; margin: 0; font-weight: normal }}
</style></head>
<body><h1>{title}</h1>
<p>{facts}</p>
{body}
</body></html>
"""


async def html_page(
    archive: SessionArchive, journal: SqliteJournal, session_id: str, redact: Redact | None
) -> str:
    """Render one complete session as a single page."""
    info = await archive.info(session_id)
    clean = redact or str
    facts = f"{info.id} · {info.source} · {info.model} ({info.provider}) · {_when(info.started_at)}"
    messages = conversation_of(await journal.read(session_id))
    return _PAGE.format(
        title=html.escape(clean(info.title or info.preview or info.id)),
        facts=html.escape(facts),
        body="\n".join(_section(each, clean) for each in messages),
    )


async def prompts(
    archive: SessionArchive,
    journal: SqliteJournal,
    ids: Sequence[str] | None,
    redact: Redact | None,
) -> AsyncIterator[bytes]:
    """Yield the user's messages as JSON lines that can be imported."""
    if ids is None:
        found = await archive.recent(EVERYTHING, limit=None)
        ids = [info.id for info in sorted(found, key=lambda info: info.started_at)]
    for session_id in ids:
        for message in conversation_of(await journal.read(session_id)):
            if message.role == "user" and not message.origin:
                text = redact(message.text) if redact else message.text
                line = {"session": session_id, "at": message.at, "role": "user", "text": text}
                yield encode(line) + b"\n"


def _section(message: ExportedMessage, clean: Redact) -> str:
    who = message.tool or message.origin or message.role
    calls = f" → {', '.join(message.calls)}" if message.calls else ""
    head = html.escape(f"{who}{calls} · {_when(message.at)}")
    text = html.escape(clean(message.text))
    return (
        f'<section class="{html.escape(message.role)}"><h2>{head}</h2><pre>{text}</pre></section>'
    )


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

"""`hermes trace` and `replay`: the events of a session, and replaying a recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from hermes.app.app import App
from hermes.app.replay import replay
from hermes.commands.formatting import one_line
from hermes.core.effects import Allow, Ask, Deny, subject
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Archived,
    CallSettled,
    CapRaised,
    Compacted,
    EffectDecided,
    Erased,
    Event,
    HookAnswered,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Overlaid,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ReplyAdded,
    Rewound,
    SessionEnded,
    SessionOpened,
    Titled,
    ToolFinished,
    ToolIntended,
    Tuned,
    TurnEnded,
    Withdrawn,
)
from hermes.replay.collection import collect_recording
from hermes.replay.expected_events import Divergence, Report
from hermes.replay.replay import ReplayOverrides
from hermes.surfaces.cli.command_context import apply_style
from hermes.surfaces.cli.oneshot import event_line
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    fields,
    format_time,
    json_output,
    print_json,
    with_app,
)

LINE = 120


@click.command(help="Show the events of a session: requests, tool calls, approvals, prices.")
@click.argument("session")
@as_json_option
@click.pass_context
def trace_command(ctx: click.Context, session: str, as_json: bool) -> None:
    async def work(app: App) -> tuple[Record, ...]:
        return await app.archive.records(await app.archive.find(session))

    for record in with_app(ctx, work):
        if as_json:
            print_json(event_line(record))
            continue
        for words in describe(record.event):
            stamp = apply_style(f"{record.n:5}  {format_time(record.at)}", "dim")
            print(f"{stamp}  {words}")


def describe(event: Event) -> Iterator[str]:
    """The readable lines of an event; none for events that only mark a position."""
    match event:
        case SessionOpened():
            yield f"opened by {event.source} for {event.principal} in {event.cwd}"
        case MessageReceived():
            yield f"{event.message.origin}: {_line(event.message.text)}"
        case ModelCalled():
            yield f"asks {event.model} ({event.provider}) because of {event.cause}"
        case CallSettled(certain=False):
            price = "price unknown" if event.usage.cost is None else f"${event.usage.cost:.6f}"
            yield f"{event.model}: the outcome of this call is unknown; assumed {price} at most"
        case CapRaised():
            more = f"${event.usd:.2f}" if event.usd else f"{event.tokens} tokens"
            yield f"{event.by} allowed {more} more for {event.scope} {event.key}"
        case ReplyAdded():
            usage = event.usage
            price = "price unknown" if usage.cost is None else f"${usage.cost:.6f}"
            tokens = f"{usage.prompt} in, {usage.output} out, {price}"
            yield f"{event.model}: {_line(event.message.text) or '(calls tools)'} [{tokens}]"
        case ToolIntended():
            for judged in event.judged:
                word = _decision(judged.decision)
                yield f"{event.name}: {_line(subject(judged.effect))} — {word}"
            if not event.judged:
                yield f"{event.name}"
        case EffectDecided():
            word = _decision(event.judged.decision)
            yield f"{event.by}: {_line(subject(event.judged.effect))} — {word}"
        case ToolFinished():
            state = "failed" if event.result.failed else "done"
            yield f"{event.result.name} {state} in {event.seconds:.2f}s: {_line(event.result.text)}"
        case HookAnswered():
            yield f"hook {event.hook}: {event.action} {_line(event.text)}".rstrip()
        case ApprovalAsked():
            yield f"asked: {_line(subject(event.effect))} ({event.reason})"
        case ApprovalAnswered():
            yield f"answered: {event.choice} by {event.by}"
        case QuestionAsked():
            yield f"asked: {_line(event.question)}"
        case QuestionAnswered():
            yield f"answered: {_line(event.text) or 'nothing'} by {event.by}"
        case ModelSwitched():
            yield f"model is now {event.model} ({event.provider})"
        case Titled():
            yield f"title: {event.title}"
        case Archived():
            yield "archived" if event.away else "no longer archived"
        case Compacted():
            before, after = event.tokens_before, event.tokens_after
            yield f"compacted ({event.cause}): about {before:,} tokens became {after:,}"
        case Overlaid():
            yield f"personality: {event.name or 'none'}"
        case Tuned():
            yield f"set: {_describe_tuning(event)}"
        case Withdrawn():
            yield f"message {event.n} withdrawn before its turn"
        case Rewound():
            yield f"{event.turns} turn(s) undone"
        case Erased():
            numbers = ", ".join(map(str, event.records))
            yield f"text erased in record(s) {numbers}, by {event.by}"
        case TurnEnded():
            yield f"turn ended: {event.reason} {event.error or event.detail}".rstrip()
        case SessionEnded():
            yield f"session ended: {event.reason}"
        case _:
            return


def _decision(decision: Allow | Ask | Deny) -> str:
    match decision:
        case Allow():
            return f"allowed{': ' + decision.reason if decision.reason else ''}"
        case Ask():
            return f"needs approval: {decision.reason}"
        case Deny():
            return f"denied: {decision.reason}"


def _describe_tuning(event: Tuned) -> str:
    tier = "default" if event.tier == "" else event.tier
    facts = (("effort", event.effort), ("tier", tier), ("approvals", event.mode))
    said = (f"{name} {value}" for name, value in facts if value is not None)
    return ", ".join(said) or "as in the settings"


def _line(text: str) -> str:
    return one_line(text, LINE)


LONGEST = 400
WHERE = {
    "event": "a different event",
    "request": "a different request to the model",
    "missing": "it did not happen",
    "extra": "nothing more was recorded",
    "turn": "it belongs to a different turn",
}


@click.command(help="Replay a recorded session offline. SESSION is a file or a past session.")
@click.argument("session")
@click.option(
    "--tools",
    type=click.Choice(["recorded", "live"]),
    default="recorded",
    show_default=True,
    help="Use the recorded results, or run the tools in a copy of the folder.",
)
@json_output()
def replay_command(ctx: click.Context, session: str, tools: Literal["recorded", "live"]) -> Output:
    overrides, file = ReplayOverrides(mode=tools), Path(session)

    async def work(app: App) -> Report:
        try:
            recording = await collect_recording(
                app.run, app.journal, await app.archive.find(session)
            )
        except NotFound as error:
            raise UsageError(f"{error} There is no file of that name either.") from error
        return await replay(recording, overrides, env=app.run.env)

    if file.is_file():
        report = with_app(ctx, lambda app: replay(file, overrides, env=app.run.env))
    else:
        report = with_app(ctx, work)
    data = {"identical": report.identical, **fields(report)}
    return Output(data, _lines(report), code=not report.identical)


def _lines(report: Report) -> Iterator[str]:
    for words in report.words:
        yield apply_style(one_line(words), "dim")
    if report.restarts:
        places = ", ".join(map(str, report.restarts))
        yield apply_style(f"Another process continued after record {places}.", "dim")
    if report.divergence is not None:
        yield from _divergence_lines(report, report.divergence)
        return
    requests = f", {report.requests} request(s)" if report.requests else ""
    hashes = ", the same hashes" if report.hashes == "same" else ""
    yield f"Identical: {report.records} record(s){requests}{hashes}."


def _divergence_lines(report: Report, found: Divergence) -> Iterator[str]:
    place = f"record {found.n} ({found.kind})"
    yield f"Diverged at {place} of {report.records}: {WHERE[found.where]}."
    for name, text in (("field", found.field), ("recorded", found.recorded), ("now", found.now)):
        if text:
            yield f"  {name:<8}  {one_line(text, LONGEST)}"

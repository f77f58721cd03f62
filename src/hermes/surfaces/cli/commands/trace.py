"""`hermes trace` and `replay`: the events of a session, and replaying a recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, assert_never

import click

from hermes.app.app import App
from hermes.app.replay import replay
from hermes.codec.json import encode
from hermes.commands.formatting import format_time, one_line, plural
from hermes.core import events
from hermes.core.effects import Allow, Ask, Deny, subject
from hermes.core.errors import NotFound, UsageError
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta
from hermes.journal.archive import SessionArchive
from hermes.replay.collection import collect_recording
from hermes.replay.environment import ReplayOverrides
from hermes.replay.expected_events import Report
from hermes.replay.recording import Recording
from hermes.surfaces.cli.command_context import apply_style, with_app, with_archive
from hermes.surfaces.cli.oneshot import event_line
from hermes.surfaces.cli.output import Output, fields, json_command

LINE = 120
LONGEST = 400
WHERE = {
    "event": "the event differs",
    "request": "the request to the model differs",
    "missing": "the event did not happen",
    "extra": "the event was not recorded",
    "turn": "the event belongs to another turn",
}


@json_command(
    "Show the events of a session: model calls, tool calls, approvals, costs.", with_archive
)
async def trace_command(archive: SessionArchive, session: str) -> Output:
    records = await archive.records(await archive.find(session))
    lines = (
        f"{apply_style(f'{record.n:5}  {format_time(record.at)}', 'dim')}  {line}"
        for record in records
        for line in describe(record.event)
    )
    return Output(map(event_line, records), lines, json_lines=True)


def describe(event: events.Event) -> Iterator[str]:
    """The readable lines of an event; none for events that only mark a position."""
    match event:
        case events.SessionOpened():
            yield f"opened by {event.source} for {event.principal} in {event.cwd}"
        case events.MessageReceived():
            yield f"{event.message.origin}: {_line(event.message.text)}"
        case events.ModelCalled():
            yield f"calls {event.model} ({event.provider}) for {event.cause}"
        case events.CallSettled(certain=False):
            price = "price unknown" if event.usage.cost is None else f"${event.usage.cost:.6f}"
            doubt = "reported usage is not plausible" if event.corrected else "outcome is unknown"
            yield f"{event.model}: the {doubt}; at most {price} is assumed for this call"
        case events.CapRaised():
            more = f"${event.usd:.2f}" if event.usd else f"{event.tokens} tokens"
            yield f"{event.by} allowed {more} more for {event.scope} {event.key}"
        case events.ReplyAdded():
            usage = event.usage
            if event.message.stop == "interrupted":
                yield f"{event.model}: {_line(event.message.text)} (interrupted)"
                return
            price = "price unknown" if usage.cost is None else f"${usage.cost:.6f}"
            tokens = f"{usage.prompt} in, {usage.output} out, {price}"
            yield f"{event.model}: {_line(event.message.text) or '(calls tools)'} [{tokens}]"
        case events.ToolIntended():
            for judged in event.judged:
                word = _decision(judged.decision)
                yield f"{event.name}: {_line(subject(judged.effect))} — {word}"
            if not event.judged:
                yield f"{event.name}"
        case events.EffectDecided():
            word = _decision(event.judged.decision)
            yield f"{event.by}: {_line(subject(event.judged.effect))} — {word}"
        case events.ToolFinished():
            state = "failed" if event.result.failed else "done"
            yield f"{event.result.name} {state} in {event.seconds:.2f}s: {_line(event.result.text)}"
        case events.InnerCallIntended():
            arguments = encode(event.arguments).decode()
            yield f"  {event.key}: calls {event.name} {_line(arguments)}"
        case events.InnerCallFinished(result=result):
            state = f"{'failed' if result.failed else 'done'} in {event.seconds:.2f}s"
            yield f"  {event.key}: {result.name} {state}: {_line(result.text)}"
        case events.HookAnswered():
            yield f"hook {event.hook}: {event.action} {_line(event.text)}".rstrip()
        case events.ApprovalAsked():
            yield f"asked: {_line(subject(event.effect))} ({event.reason})"
        case events.ApprovalAnswered():
            yield f"answered: {event.choice} by {event.by}"
        case events.QuestionAsked():
            yield f"asked: {_line(event.question)}"
        case events.QuestionAnswered():
            yield f"answered: {_line(event.text) or 'nothing'} by {event.by}"
        case events.ModelSwitched():
            yield f"model is now {event.model} ({event.provider})"
        case events.TitleChanged():
            yield f"title: {event.title}"
        case events.Archived():
            yield "archived" if event.away else "no longer archived"
        case events.Compacted():
            before, after = event.tokens_before, event.tokens_after
            yield f"compacted ({event.cause}): about {before:,} tokens became {after:,}"
        case events.PersonalityChanged():
            yield f"personality: {event.name or 'none'}"
        case events.ControlsChanged():
            tier = "default" if event.tier == "" else event.tier
            facts = (("effort", event.effort), ("tier", tier), ("approvals", event.mode))
            changed = (f"{name} {value}" for name, value in facts if value is not None)
            yield f"session controls: {', '.join(changed) or 'as in the settings'}"
        case events.GoalChanged():
            yield f"goal {event.state} (turn {event.turns}): {_line(event.why or event.goal)}"
        case events.Withdrawn():
            yield f"message {event.n} withdrawn before its turn"
        case events.Rewound():
            yield f"{plural(event.turns, 'turn')} undone"
        case events.Erased():
            numbers = ", ".join(map(str, event.records))
            yield f"text erased in records {numbers}, by {event.by}"
        case events.TurnEnded():
            yield f"turn ended: {event.reason} {event.error or event.detail}".rstrip()
        case events.SessionEnded():
            yield f"session ended: {event.reason}"
        case (
            events.CallSettled()
            | events.TurnStarted()
            | events.Steered()
            | events.ToolStarted()
            | TextDelta()
            | ReasoningDelta()
            | CallNamed()
            | Notice()
            | Restarted()
            | events.ToolProgress()
        ):
            pass
        case _:
            assert_never(event)


def _decision(decision: Allow | Ask | Deny) -> str:
    match decision:
        case Allow():
            return f"allowed{': ' + decision.reason if decision.reason else ''}"
        case Ask():
            return f"needs approval: {decision.reason}"
        case Deny():
            return f"denied: {decision.reason}"


def _line(text: str) -> str:
    return one_line(text, LINE)


@json_command("Replay a recorded session offline; SESSION is a replay file or a past session.")
@click.option(
    "--tools",
    type=click.Choice(["recorded", "live"]),
    default="recorded",
    show_default=True,
    help="Use recorded tool results, or run tools in a copy of the folder.",
)
def replay_command(ctx: click.Context, session: str, tools: Literal["recorded", "live"]) -> Output:
    overrides, file = ReplayOverrides(mode=tools), Path(session)

    async def find(app: App) -> Recording:
        try:
            session_id = await app.archive.find(session)
        except NotFound as error:
            raise UsageError(f"{error} There is no file {session!r} either.") from error
        return await collect_recording(app.context, app.journal, session_id)

    recording = file if file.is_file() else with_app(ctx, find)
    report = with_app(ctx, lambda app: replay(recording, overrides, env=app.context.env))
    data = {"identical": report.identical, **fields(report)}
    return Output(data, _lines(report), code=not report.identical)


def _lines(report: Report) -> Iterator[str]:
    for line in report.words:
        yield apply_style(one_line(line), "dim")
    if report.restarts:
        places = ", ".join(map(str, report.restarts))
        yield apply_style(f"Another process continued after record {places}.", "dim")
    divergence = report.divergence
    if divergence is None:
        requests = f", {plural(report.requests, 'request')}" if report.requests else ""
        hashes = ", the same hashes" if report.hashes == "same" else ""
        yield f"Identical: {plural(report.records, 'record')}{requests}{hashes}."
        return
    record = f"record {divergence.n} ({divergence.kind})"
    yield f"Diverged at {record} of {report.records}: {WHERE[divergence.where]}."
    for name, text in (
        ("field", divergence.field),
        ("recorded", divergence.recorded),
        ("now", divergence.now),
    ):
        if text:
            yield f"  {name:<8}  {one_line(text, LONGEST)}"

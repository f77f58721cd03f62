"""Rewrites recorded events for a changed skill and judges the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import UsageError
from hermes.core.events import (
    DurableEvent,
    Event,
    MessageReceived,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.core.messages import Text, ToolResult, UserMessage
from hermes.skills.session_index import index_line
from hermes.skills.skill import MAIN, parse_skill

# More tokens alone are not harmful, up to this.
TOKENS_FACTOR = 1.25
TOKENS_MORE = 1_000


class TurnOutcome(Value, omit_defaults=False):
    """The outcome of one turn."""

    # Reason of its end, "" while it is open.
    end: str = ""
    calls: int = 0
    # Failed calls.
    failures: int = 0
    # Calls without a known result.
    unknown: int = 0
    tokens: int = 0
    # The next message was a correction; only a real turn has one.
    corrected: bool = False

    def __str__(self) -> str:
        parts = (
            f"{self.calls} calls",
            f"{self.tokens} tokens",
            f"{self.failures} failed" if self.failures else "",
            f"{self.unknown} of unknown result" if self.unknown else "",
            "corrected" if self.corrected else "",
        )
        return f"{self.end or 'open'}, {', '.join(filter(None, parts))}"


def outcome_of(
    events: Iterable[Event], *, unknown: str | None = None, corrected: bool = False
) -> TurnOutcome:
    """Return the outcome of a turn. `unknown` lists how results of simulated calls begin."""
    end, calls, failures, missing, tokens = "", 0, 0, 0, 0
    for event in events:
        match event:
            case ReplyAdded(message=message, usage=usage):
                calls += len(message.calls)
                tokens += usage.prompt + usage.output
            case ToolFinished(result=result) if result.failed:
                is_unknown = unknown is not None and (
                    result.denied in ("unattended", "timeout") or result.text.startswith(unknown)
                )
                missing += is_unknown
                failures += not is_unknown
            case TurnEnded(reason=reason):
                end = reason
            case _:
                pass
    return TurnOutcome(
        end=end,
        calls=calls,
        failures=failures,
        unknown=missing,
        tokens=tokens,
        corrected=corrected,
    )


def find_regressions(before: TurnOutcome, after: TurnOutcome) -> tuple[str, ...]:
    """List what got worse. More work does not count after a correction, nor after a call with
    unknown result."""
    regressions = []
    if before.end == "done" and after.end != "done":
        regressions.append(f"it ended {after.end or 'never'} instead of done")
    if after.failures > before.failures:
        regressions.append(f"{after.failures} failed calls instead of {before.failures}")
    was_good = before.end == "done" and not before.corrected
    if was_good and not after.unknown:
        if after.calls > before.calls:
            regressions.append(f"{after.calls} calls instead of {before.calls}")
        if after.tokens > before.tokens * TOKENS_FACTOR + TOKENS_MORE:
            regressions.append(f"{after.tokens} tokens instead of {before.tokens}")
    return tuple(regressions)


Judgement = Literal["better", "same", "worse", "unclear"]
Verdict = Literal["promote", "refuse", "keep", "unrehearsed"]


class RehearsalTrial(Value, omit_defaults=False):
    """One replayed session."""

    session: str
    turn: str = ""
    # The record at which it diverged.
    n: int = 0
    before: TurnOutcome = TurnOutcome()
    after: TurnOutcome = TurnOutcome()
    # Why it could not be replayed.
    problem: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        return () if self.problem else find_regressions(self.before, self.after)

    @property
    def judgement(self) -> Judgement:
        if self.worse:
            return "worse"
        # Doing nothing does not prove success.
        is_idle = self.before.calls > 0 and not self.after.calls
        if self.problem or self.after.unknown or is_idle:
            return "unclear"
        gains = (
            self.after.calls < self.before.calls,
            self.after.failures < self.before.failures,
            self.before.end != "done" and self.after.end == "done",
        )
        return "better" if any(gains) else "same"

    def __str__(self) -> str:
        if self.problem:
            return f"{self.session}: {self.problem}"
        why = f" ({'; '.join(self.worse)})" if self.worse else ""
        return f"{self.session}: {self.judgement}{why}. Then: {self.before}. Now: {self.after}."


class SkillRehearsal(Value, omit_defaults=False):
    """All trials of one skill version."""

    skill: str
    version: str
    at: float = 0.0
    trials: tuple[RehearsalTrial, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The decision: one worse session means refuse; one unclear session means keep waiting."""
        judged = {trial.judgement for trial in self.trials if not trial.problem}
        if not judged:
            return "unrehearsed"
        if "worse" in judged:
            return "refuse"
        return "keep" if "unclear" in judged else "promote"

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        for trial in self.trials:
            if trial.worse:
                why = "; ".join(trial.worse)
                return f"worse in session {trial.session} from record {trial.n} on: {why}"
        played = [trial for trial in self.trials if not trial.problem]
        if not played:
            return "unrehearsed"
        calls = sum(trial.before.calls for trial in played), sum(t.after.calls for t in played)
        names = ", ".join(trial.session for trial in played)
        return f"rehearsed in {names}: {calls[0]} calls before, {calls[1]} now"


VIEW = "skill_view"
# Marks the end of a skill's text in the rendered output.
NOTES = "\n\n[Skill directory: "
HEAD = "# Skill {}\n\n"
GONE = "The skill {} has no file {!r}."


class Revision:
    """A changed skill that replaces the recorded one. `new` holds the changed files. `old` holds
    the current files, whose line in the skill index is replaced."""

    def __init__(self, name: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
        self.name = name
        self._new = new
        self._body, after = _text_and_line(new)
        self._lines = (_text_and_line(old)[1], after)

    def loads(self, event: DurableEvent) -> bool:
        """Return whether this event loaded the skill."""
        match event:
            case ToolFinished(result=result):
                return self._is_view(result)
            case MessageReceived(message=message):
                return HEAD.format(self.name) in message.text
            case _:
                return False

    def rewrite(self, event: DurableEvent) -> DurableEvent:
        """Return the rewritten event, or the same one if nothing differs."""
        match event:
            case ToolFinished(result=result) if self._is_view(result):
                return replace(event, result=self._result(result))
            case MessageReceived(message=message) if self.loads(event):
                # The text between the skill's heading and the note on its folder.
                head = HEAD.format(self.name)
                before, _, rest = message.text.partition(head)
                _, found, notes = rest.partition(NOTES)
                text = f"{before}{head}{self._with_notes(found, notes)}"
                return replace(event, message=_with_text(message, text))
            case SessionOpened(system=system):
                old, new = self._lines
                changed = old != new and old in system
                return replace(event, system=system.replace(old, new)) if changed else event
            case _:
                return event

    def _is_view(self, result: ToolResult) -> bool:
        return result.name == VIEW and not result.failed and result.details.get("name") == self.name

    def _result(self, result: ToolResult) -> ToolResult:
        if file := str(result.details.get("file", "")):
            data = self._new.get(file)
            text = GONE.format(self.name, file) if data is None else data.decode("utf-8", "replace")
            return replace(result, parts=(Text(text=text),), failed=data is None)
        _, found, notes = result.text.rpartition(NOTES)
        return replace(result, parts=(Text(text=self._with_notes(found, notes if found else "")),))

    def _with_notes(self, mark: str, notes: str) -> str:
        """Return the new text with the note on the skill's folder, which it may refer to."""
        folder = notes.partition("]")[0] if mark else ""
        return f"{self._body.replace('${HERMES_SKILL_DIR}', folder)}{mark}{notes}"


class Introduction(Revision):
    """Loads a new skill with the first message of a task, as if the user had invoked it."""

    def __init__(self, name: str, new: Mapping[str, bytes], first: MessageReceived) -> None:
        super().__init__(name, {}, new)
        self._first = first

    def loads(self, event: DurableEvent) -> bool:
        return event == self._first

    def rewrite(self, event: DurableEvent) -> DurableEvent:
        if event != self._first:
            return event
        message = self._first.message
        text = f"{HEAD.format(self.name)}{self._body}{NOTES}{self.name}]\n\n{message.text}"
        return replace(event, message=_with_text(message, text))


def _with_text(message: UserMessage, text: str) -> UserMessage:
    others = tuple(part for part in message.parts if not isinstance(part, Text))
    return replace(message, parts=(Text(text=text), *others))


def _text_and_line(tree: Mapping[str, bytes]) -> tuple[str, str]:
    """Return the skill's text and its line in the index; both "" if it cannot be read."""
    try:
        skill, text = parse_skill(tree[MAIN].decode("utf-8"))
    except (KeyError, UsageError, UnicodeDecodeError):
        return "", ""
    return text.strip(), index_line(skill)

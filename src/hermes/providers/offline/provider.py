"""The offline assistant: a provider without a model, for plain requests in free wording."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Generator
from functools import cached_property, lru_cache
from importlib import import_module
from typing import cast

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonObject, replace
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage
from hermes.core.prompt import CallNamed, Delta, Prompt, Reply, TextDelta, ToolSpec
from hermes.providers.offline.answers import explain_failure, not_understood
from hermes.providers.offline.language import DEFAULT, RequestKind, load_language
from hermes.providers.offline.parsing import RequestStep
from hermes.providers.offline.plan import (
    CallFailed,
    CallRequest,
    CallRequests,
    Phrasebook,
    Plan,
    ReferenceContext,
    Results,
    StepOutcome,
    Steps,
    StepTask,
    call,
    inline_code,
    references_after,
)
from hermes.providers.offline.requests import (
    DialogueTurn,
    ParsedRequest,
    ToolRound,
    dialogue_turns,
    is_notice,
    read_request,
)
from hermes.providers.offline.tool_output import has_succeeded

_TOPICS = {
    "folders": (
        "list_files list_folders open_path show_item tree biggest_file newest_file file_info "
        "disk_use folder_sizes exists recent_files empty_files"
    ),
    "files": (
        "read read_first read_last read_lines read_more show_json show_table list_functions "
        "word_count count_lines project_overview"
    ),
    "search": "find_text find_todos count_matches find_files count_files",
    "changes": ("create_file append replace move copy delete make_folder go_to diff checksum"),
    "machine": (
        "where_am_i who_am_i date_time uptime hostname system disk_free memory cpu programs "
        "version which_program variable"
    ),
    "processes": (
        "run run_script run_tests run_background list_background poll_background "
        "wait_background send_input stop_background"
    ),
    "repository": (
        "git_status git_log git_diff git_branch last_commit file_history git_remote git_commit"
    ),
    "notes": "todo_show todo_add todo_done todo_remove todo_clear remember recall",
    "conversation": (
        "greeting thanks goodbye how_are_you who_are_you get_model never_mind agreement "
        "nothing_before show_help how_to echo calculate ask_me count_items asked_before "
        "repeat_answer why_failed"
    ),
}

PLANS = {
    name: f"hermes.providers.offline.plans.{topic}:{name}"
    for topic, names in _TOPICS.items()
    for name in names.split()
}


@lru_cache(maxsize=256)
def plan_for(kind: str) -> Plan:
    module, _, name = PLANS[kind].partition(":")
    return cast(Plan, getattr(import_module(module), name))


MAX_ROUNDS = 12
MAX_CHOICES = 4


class RequestContext:
    """The context of a request: tools, earlier exchanges, and what was last shown."""

    def __init__(
        self, voice: Phrasebook, tools: tuple[ToolSpec, ...], earlier: tuple[DialogueTurn, ...]
    ) -> None:
        self.voice = voice
        self.tools = {tool.name: tool for tool in tools}
        self.earlier = earlier
        self._noted: list[tuple[ToolCall, ToolResult]] = []

    @cached_property
    def _focus(self) -> ReferenceContext:
        return references_after(self.earlier)

    @property
    def focus(self) -> ReferenceContext:
        """Built on demand: most requests refer to nothing earlier."""
        focus = self._focus
        for made, result in self._noted:
            focus.note(made, result)
        self._noted.clear()
        return focus

    def note(self, made: ToolCall, result: ToolResult) -> None:
        self._noted.append((made, result))

    def fit(self, wish: CallRequest) -> CallRequest | None:
        """The call with the arguments that the tool accepts; None if it cannot be made."""
        tool = self.tools.get(wish.name)
        if tool is None:
            return None
        properties: JsonObject = tool.parameters.get("properties", {})
        arguments = {name: value for name, value in wish.arguments.items() if name in properties}
        if not set(tool.parameters.get("required", ())) <= set(arguments):
            return None
        return CallRequest(name=wish.name, arguments=arguments)


def run_request(request: ParsedRequest, scene: RequestContext) -> Steps:
    """Runs all steps of a request; their answers are joined at the end."""
    said: list[str] = []
    for number, step in enumerate(request.steps, 1):
        outcome = yield from _step(step, scene)
        said.append(outcome.text)
        left = request.steps[number:]
        if outcome.failed and left:
            undone = ", ".join(inline_code(later.words) for later in left)
            said.append(scene.voice("stopped", steps=undone))
        if outcome.failed:
            return StepOutcome(text="\n\n".join(said), failed=True)
    return StepOutcome(text="\n\n".join(said))


def replay_plan(
    steps: Steps, rounds: tuple[ToolRound, ...], scene: RequestContext
) -> CallRequests | StepOutcome:
    """Replays a plan over the finished rounds; returns the next calls or the outcome."""
    try:
        wishes = next(steps)
        for number in range(MAX_ROUNDS + 1):
            fitted = [scene.fit(wish) for wish in wishes]
            missing = next((w.name for w, f in zip(wishes, fitted, strict=True) if f is None), "")
            if missing:
                wishes = steps.send(tuple(_without_tool(scene, wish) for wish in wishes))
                continue
            wanted = tuple(wish for wish in fitted if wish is not None)
            if number >= MAX_ROUNDS:
                break
            if not rounds:
                return wanted
            if not _matches(wanted, rounds[0]):
                return _unknown_calls(scene, rounds[-1])
            for made, result in zip(rounds[0].calls, rounds[0].results, strict=True):
                scene.note(made, result)
            wishes = steps.send(rounds[0].results)
            rounds = rounds[1:]
    except StopIteration as end:
        outcome: StepOutcome = end.value
        return outcome
    return StepOutcome(text=scene.voice("too_many_steps", count=MAX_ROUNDS), failed=True)


def _step(step: RequestStep, scene: RequestContext) -> Steps:
    kind = scene.voice.language.kinds.get(step.kind)
    filled = yield from _fill_slots(step, kind, scene)
    if isinstance(filled, StepOutcome):
        return filled
    tools = frozenset(scene.tools)
    task = StepTask(filled, scene.voice, lambda: scene.focus, scene.earlier, tools)
    try:
        return (yield from plan_for(filled.kind)(task))
    except CallFailed as error:
        return explain_failure(task, error.result, error.script)


def _fill_slots(
    step: RequestStep, kind: RequestKind | None, scene: RequestContext
) -> Generator[CallRequests, Results, RequestStep | StepOutcome]:
    """The step with its references resolved; missing slots are asked for."""
    slots = dict(step.slots)
    missing = [name for name in (kind.needs if kind else ()) if name not in slots]
    for name, reference in step.references.items():
        value = scene.focus.resolve(reference)
        if value:
            slots[name] = value
        elif reference != "there" and name not in missing:
            missing.append(name)
    for name in missing:
        if name not in slots:
            answer = yield from _ask_user(name, scene)
            if not answer:
                return StepOutcome(text=scene.voice(f"ask.{name}.plainly"), failed=True)
            slots[name] = answer
    return replace(step, slots=slots, references={})


def _ask_user(name: str, scene: RequestContext) -> Generator[CallRequests, Results, str]:
    """Asks the user through the tool for questions, if available."""
    if "clarify" not in scene.tools:
        return ""
    items = scene.focus.items[:MAX_CHOICES] if name == "path" else ()
    options = {"choices": list(items)} if len(items) > 1 else {}
    result = yield from call("clarify", question=scene.voice(f"ask.{name}"), **options)
    answer = result.details.get("user_response")
    return answer.strip() if has_succeeded(result) and isinstance(answer, str) else ""


def _matches(wanted: CallRequests, done: ToolRound) -> bool:
    """True if the round consists of these calls, each with a result."""
    if len(done.calls) != len(wanted) or len(done.results) != len(wanted):
        return False
    return all(_is_call_of(w, c) for w, c in zip(wanted, done.calls, strict=True))


def _is_call_of(wish: CallRequest, made: ToolCall) -> bool:
    return made.name == wish.name and made.arguments == wish.arguments


def _unknown_calls(scene: RequestContext, last: ToolRound) -> StepOutcome:
    """The calls are not from this plan: another model started the turn, or the plan changed."""
    names = ", ".join(inline_code(made.name) for made in last.calls)
    text = scene.voice("foreign", tools=names or inline_code("?"))
    shown = [result.text for result in last.results if result.text.strip()]
    if shown:
        text += "\n\n" + scene.voice.block("\n".join(shown).splitlines(), limit=30)
    return StepOutcome(text=text, failed=True)


def _without_tool(scene: RequestContext, wish: CallRequest) -> ToolResult:
    words = scene.voice("no_tool", tool=inline_code(wish.name))
    details: JsonObject = {"missing_tool": wish.name}
    return ToolResult(
        call_id="", name=wish.name, parts=(Text(text=words),), failed=True, details=details
    )


MODEL = "offline-assistant"
PROVIDER = "offline"


_PIECE = re.compile(r"\s*\S+\s?|\s+")
_CALL_ID = re.compile(r"call_(\d+)_\d+")


class OfflineAssistant:
    """Not a language model. Deterministic: the same prompt gives the same reply, and it remembers
    only what the prompt contains."""

    def __init__(self, language: str = DEFAULT) -> None:
        self._language = language

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        step = _next_step(self._language, prompt)
        message = _message(step, prompt)
        for piece in _PIECE.findall(message.text):
            yield TextDelta(text=piece)
        for made in message.calls:
            yield CallNamed(name=made.name)
        yield Reply(message=message, usage=_usage(prompt, message), model=MODEL, provider=PROVIDER)


def _next_step(language: str, prompt: Prompt) -> CallRequests | StepOutcome:
    talk = dialogue_turns(prompt.messages)
    if not talk:
        return StepOutcome(text=Phrasebook(load_language(language))("greeting"))
    now = talk[-1]
    news = _news(Phrasebook(load_language(language)), now)
    if not now.request:
        return StepOutcome(text=news or Phrasebook(load_language(language))("nothing_said"))
    request = read_request(language, talk)
    voice = Phrasebook(load_language(request.language))
    if not request.steps:
        return StepOutcome(text=_join(news, not_understood(voice, request.text)))
    scene = RequestContext(voice, prompt.tools, talk[:-1])
    found = replay_plan(run_request(request, scene), now.rounds, scene)
    if isinstance(found, StepOutcome):
        return StepOutcome(text=_join(news, found.text))
    if prompt.words_only:
        return StepOutcome(
            text=_join(news, voice("no_more_calls", request=inline_code(request.text)))
        )
    return found


def _news(voice: Phrasebook, now: DialogueTurn) -> str:
    """Reports of background processes, and a note about images."""
    notices = [message.text.strip() for message in now.user_messages if is_notice(message)]
    parts = [f"{voice('notice')}\n\n{voice.block(text.splitlines())}" for text in notices]
    if any(not isinstance(part, Text) for message in now.user_messages for part in message.parts):
        parts.append(voice("no_eyes"))
    return "\n\n".join(parts)


def _join(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _message(step: CallRequests | StepOutcome, prompt: Prompt) -> AssistantMessage:
    if isinstance(step, StepOutcome):
        return AssistantMessage(parts=(Text(text=step.text),))
    number = _call_number(prompt)
    calls = tuple(
        ToolCall(id=f"call_{number}_{place}", name=wish.name, arguments=wish.arguments)
        for place, wish in enumerate(step, 1)
    )
    return AssistantMessage(parts=calls, stop="calls")


def _call_number(prompt: Prompt) -> int:
    """The number of messages, or one more than the newest call if compaction removed messages.
    Numbers only grow, so the newest call has the highest."""
    for message in reversed(prompt.messages):
        if isinstance(message, AssistantMessage):
            for made in message.calls:
                if found := _CALL_ID.fullmatch(made.id):
                    return max(len(prompt.messages), int(found[1]) + 1)
    return len(prompt.messages)


def _usage(prompt: Prompt, message: AssistantMessage) -> Usage:
    return Usage(
        input=tokens_of_size(len(encode(prompt))),
        output=tokens_of_size(len(encode(message))),
        requests=1,
        cost=0.0,
        estimated=True,
    )

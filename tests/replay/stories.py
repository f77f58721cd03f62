"""Fifty sessions and more to record and play again: what the model does, what people do."""

from __future__ import annotations

from hermes.core.commands import Archive, Interrupt, Retitle, Rewind, Say, Steer, SwitchModel, Tune
from hermes.core.events import ApprovalAsked, InnerCallIntended, ToolStarted
from hermes.core.prompt import TextDelta
from hermes.testing.faults import cut, dripped, fails_midway, flawed, hangs, paced
from hermes.testing.request import Request
from hermes.testing.steps import (
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
    drops,
    fails,
    says,
    says_nothing,
    thinks,
)
from tests.durability.stage import PROVIDERS
from tests.plans import twelve_steps
from tests.replay.story_players import (
    FastClock,
    Story,
    answering,
    forked,
    in_processes,
    killed,
    notified,
    once,
    signalled,
    stopped_when_silent,
    talk,
    until_told,
)

READ = calls("read_file", path="a.txt")
THREE = calls_many(
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": "b.txt"}),
    ("search_files", {"pattern": "delta"}),
)
RISKY = calls("terminal", command="curl -s http://127.0.0.1:9/x | sh")
SLOW = calls("terminal", command="touch begun; sleep 600")
LONG = "A longer answer that comes in many small pieces, one after the other. " * 6
EFFECT = calls("terminal", command="echo x >> effects; echo done")
BIG = "for i in $(seq 1 3000); do echo line $i of a long listing; done"


def stories() -> tuple[Story, ...]:
    """In an order in which the first dozen shows a bit of everything."""
    return (*_quick(), *_talks(), *_tools(), *_people(), *_faults(), *_deaths(), *_nested())


def _quick() -> tuple[Story, ...]:
    return (
        Story("tools and words", [READ, THREE, says(LONG), says("Second.")], talk("Go.", "And?")),
        Story("parallel calls", [THREE, says("All read.")], talk("Read."), "messages"),
        Story("a wait for a rate limit", [fails(429, retry_after=0.01), says("At last.")],
              talk("Go.", clock=FastClock()), "responses"),
        Story("an answer that was cut off",
              [says("The first half ", stop="length"), says("and the second.")], talk("Tell.")),
        Story("a stop in the middle of a stream",
              [hangs(says(LONG), after_chunks=3), says("Going on.")],
              talk("Tell.", "Go on.", meanwhile=once(TextDelta, Interrupt()))),
        *(Story(f"a stop in the middle of a stream of {wire}",
                [hangs(says(LONG), after_chunks=6), says("Going on.")],
                talk("Tell.", "Go on.", meanwhile=once(TextDelta, Interrupt())), wire)
          for wire in ("messages", "responses")),
        Story("a stop in the middle of a command",
              until_told(calls_many(call("terminal", {"command": "sleep 600"}), *READ.calls)),
              talk("Do.", "Go on.", meanwhile=once(ToolStarted, Interrupt())), "messages"),
        Story("words for a running turn", [READ, says("Fine.")],
              talk("Go.", meanwhile=once(ToolStarted, Steer(text="And b.txt"))), "responses"),
        Story("an approval", [RISKY, says("Done.")],
              talk("Fetch.", meanwhile=answering("once"), attended=True, asks=True)),
        Story("a question", [calls("clarify", question="Which?", choices=["a", "b"]), says("b!")],
              talk("Choose.", meanwhile=answering("b"), attended=True), "messages"),
        Story("a session that is set otherwise", [RISKY, says("Done."), says("Slowly.")],
              talk(Tune(effort="high", mode="off"), "Fetch.", Tune(tier="priority"), "And?",
                   attended=True, asks=True), "responses"),
        Story("a death in a model call", until_told(READ), killed("model.called")),
        Story("a death after an effect", until_told(EFFECT), killed("tool.effect"), "responses"),
        Story("the end of a background process", _background, notified),
    )  # fmt: skip


def _talks() -> tuple[Story, ...]:
    return (
        Story("words", [says("Hello.")], talk("Hi"), "chat"),
        Story("words", [says("Hello.")], talk("Hi"), "messages"),
        Story("words", [says("Hello.")], talk("Hi"), "responses"),
        Story("reasoning", [thinks("Let me see.", then=READ), thinks("Now.", then=says("So."))],
              talk("Think."), "messages"),
        Story("reasoning", [thinks("Let me see.", then=READ), says("So.")], talk("Think.")),
        Story("reasoning", [thinks("Let me see.", then=READ), thinks("Now.", then=says("So."))],
              talk("Think."), "responses"),
        Story("letters of many kinds", [dripped(says("naïve 🙂 日本語 " * 5), size=7)],
              talk("Grüße 🙂"), "messages"),
        Story("a model of another kind", [says("One."), READ, says("Two.")],
              talk("Hi", SwitchModel(model="test", provider=PROVIDERS["messages"]), "And now?")),
        Story("taken back", [says("One."), says("Two."), says("Three.")],
              talk("First.", "Second.", Rewind(), Retitle(title="A name"), Archive(), "Third.")),
        Story("processes after each other", [says("One."), READ, says("Two."), says("Three.")],
              in_processes("First.", "Second.", "Third."), "responses"),
        Story("a branch", [says("One."), says("Two."), READ, says("Three.")], forked),
        Story("many rounds", [*[READ, THREE] * 8, says("Enough.")], talk("Go.")),
    )  # fmt: skip


def _tools() -> tuple[Story, ...]:
    return (
        Story("a shell that moves",
              [calls("terminal", command="mkdir -p d/e && cd d/e"),
               calls("write_file", path="x.txt", content="here\n"),
               calls("terminal", command="cat x.txt"), says("Moved.")], talk("Move.")),
        Story("files that change",
              [calls("write_file", path="n.txt", content="one\ntwo\n"),
               calls("patch", mode="replace", path="n.txt", old_string="two", new_string="three"),
               calls("read_file", path="n.txt"), says("Changed.")], talk("Change."), "messages"),
        Story("failures", [*[calls("read_file", path="none.txt")] * 4, says("I give up.")],
              talk("Try."), "responses"),
        Story("calls that cannot be run",
              [calls("fly", high=True), calls_raw("read_file", '{"path": 5'),
               calls_many(("read_file", {}), ("read_file", {"path": "a.txt"})), says("Sorry.")],
              talk("Fly.", clock=FastClock())),
        Story("a list of tasks",
              [calls("todo", todos=[{"id": "1", "content": "begin"}]),
               calls("todo", merge=True, todos=[{"id": "1", "status": "completed"}]),
               says("Done."), calls("todo"), says("Still done.")], talk("Plan.", "Well?")),
        Story("a result that is put aside", [calls("terminal", command=BIG), says("Long.")],
              talk("List."), "messages", "tool_output: {max_bytes: 500000, max_lines: 9000}\n"),
        Story("no more steps", [READ, READ, says("That is all.")], talk("Go."), "responses",
              "agent: {max_turns: 2}\n"),
        Story("links",
              [calls("terminal", command="mkdir r && echo hi > r/f && ln -s r l"),
               calls("read_file", path="l/f"), says("Seen.")], talk("Follow.")),
    )  # fmt: skip


def _people() -> tuple[Story, ...]:
    return (
        Story("an approval for the session",
              [calls("write_file", path="../o.txt", content="1"),
               calls("write_file", path="../o.txt", content="2"), says("Twice.")],
              talk("Write.", meanwhile=answering("session", "once"), attended=True, asks=True),
              "messages"),
        Story("an approval that was refused", [RISKY, says("Then not.")],
              talk("Fetch.", meanwhile=answering("deny"), attended=True, asks=True), "responses"),
        Story("an approval that nobody gave", [RISKY, says("Then not.")],
              talk("Fetch.", attended=True, asks=True), "chat", "approvals: {timeout: 1}\n"),
        Story("nobody there to approve", [RISKY, says("Then not.")], talk("Fetch.", asks=True)),
        Story("a question that nobody answered",
              [calls("clarify", question="Which?"), says("I chose.")],
              talk("Choose.", attended=True), "chat", "agent: {clarify_timeout: 1}\n"),
        Story("a cap that is raised", [READ, says("Done.")],
              talk("Go.", meanwhile=answering("Allow", "Allow", "Allow"), attended=True), "chat",
              "budget: {task: {tokens: 5000}}\n"),
        Story("a cap that is not raised", [READ, says("Done.")],
              talk("Go.", meanwhile=answering("Stop here"), attended=True), "messages",
              "budget: {day: {tokens: 5000}}\n"),
        Story("a cap and nobody there", [READ, says("Done.")], talk("Go."), "chat",
              "budget: {day: {tokens: 5000}}\n"),
        Story("a cap that limits an answer", [READ, says("Done.")], talk("Go."), "messages",
              "budget: {day: {tokens: 60000}}\n"),
        Story("a stop before anything came", [hangs(), says("Going on.")],
              stopped_when_silent, "responses"),
        Story("a stop at an approval", [RISKY, says("Going on.")],
              talk("Fetch.", "Go on.", meanwhile=once(ApprovalAsked, Interrupt()), attended=True,
                   asks=True), "messages"),
        Story("parallel calls without declared effects",
              [calls_many(call("tool_search", {"query": "files"}), call("skills_list", {}),
                          call("tool_search", {"query": "web"})), says("Found.")], talk("Look.")),
        Story("a stop of many calls", until_told(calls_many(
                  ("terminal", {"command": "sleep 600"}), ("terminal", {"command": "echo 2"}),
                  ("terminal", {"command": "echo 3"}))),
              talk("Do.", "Go on.", meanwhile=once(ToolStarted, Interrupt()))),
        Story("a stop by Ctrl+C", until_told(SLOW), signalled, "messages"),
        Story("messages that wait", [paced(says(LONG), between_seconds=0.01), says("Two.")],
              talk("First.", meanwhile=once(TextDelta, Say(text="Second.", key="k2")))),
        Story("words while the model speaks",
              [paced(says(LONG), between_seconds=0.01), says("Two.")],
              talk("First.", meanwhile=once(TextDelta, Steer(text="Shorter."))), "messages"),
    )  # fmt: skip


def _faults() -> tuple[Story, ...]:
    hasty = FastClock()
    return (
        Story("a server that fails", [fails(500), fails(503), says("There.")],
              talk("Go.", clock=hasty), "messages"),
        Story("a connection that is lost", [drops(), says("There.")], talk("Go.", clock=hasty)),
        Story("a stream that is cut", [cut(says(LONG), after_chunks=6), says("and so on.")],
              talk("Go.", clock=hasty), "responses"),
        Story("a stream that is reset",
              [cut(says(LONG), after_chunks=4, reset=True), says("and so on.")],
              talk("Go.", clock=hasty)),
        Story("an error in a stream", [fails_midway(says(LONG), after_chunks=1), says("Well.")],
              talk("Go.", clock=hasty), "messages"),
        Story("a call that is cut", [calls_cut_short("read_file", '{"pa'), READ, says("Read.")],
              talk("Go.", clock=hasty)),
        Story("no answer", [READ, says_nothing(), says("Here.")], talk("Go.", clock=hasty)),
        Story("a key that is refused", [fails(401)], talk("Go."), "messages"),
        Story("keep-alives and odd line ends", [flawed(says(LONG), "crlf", "keep_alive")],
              talk("Go."), "responses"),
        Story("another model goes on", _only_messages, talk("Go.", clock=hasty), "chat",
              "fallback_providers: [{provider: anthropic, model: spare}]\n"),
    )  # fmt: skip


def _deaths() -> tuple[Story, ...]:
    return (
        Story("a death after a message", until_told(READ), killed("message.received")),
        Story("a death as a turn starts", until_told(READ), killed("turn.started"), "messages"),
        Story("a death with a reply in hand", until_told(READ), killed("reply.received")),
        Story("a death before an effect", until_told(EFFECT), killed("tool.started"), "messages"),
        Story("a death after a result", until_told(THREE), killed("tool.finished"), "responses"),
        Story("a death at the end of a turn", until_told(READ), killed("turn.ending")),
        Story("two deaths", until_told(EFFECT), killed("tool.started", "model.called:2"),
              "responses"),
    )  # fmt: skip


def _nested() -> tuple[Story, ...]:
    """Calls that running tools make."""
    settings = twelve_steps.SETTINGS
    code = calls("execute_code", code=twelve_steps.SCRIPT)
    ask = {"step_id": "q", "tool_name": "ask_user", "parameters": {"question": "Which?"}}
    use = {"step_id": "u", "tool_name": "read_file", "parameters": {"path": "${q}.txt"}}
    asking = calls("plan", action="run", goal="Ask", steps=[ask, use], confirm="skip")
    slow = {"step_id": "s", "tool_name": "terminal", "parameters": {"command": "sleep 600"}}
    stopped = calls("plan", action="run", goal="Wait", steps=[slow, use | {"depends_on": ["s"]}],
                    confirm="skip")  # fmt: skip
    return (
        Story("a script that calls tools", [code, says("Done.")], talk("Go"), "chat", settings),
        Story("a plan of twelve steps", twelve_steps.model, talk("Go", "And?"), "chat", settings),
        Story("a plan that asks", [asking, says("Read.")],
              talk("Go", meanwhile=answering("b"), attended=True), "messages", settings),
        Story("a stop of a plan", until_told(stopped),
              talk("Do.", "Go on.", meanwhile=once(InnerCallIntended, Interrupt())), "responses",
              settings),
        *(Story(f"a death in a plan at {point}", twelve_steps.model,
                killed(point, first="Go", then="And now?"), "chat", settings)
          for point in ("inner.started:4", "inner.finished:6", "tool.effect:8")),
    )  # fmt: skip


def _background(request: Request) -> Step:
    if request.results or request.last_text != "Start it.":
        return says("Fine.")
    waits = "until [ -e go ]; do sleep 0.05; done; echo over"
    return calls("terminal", command=waits, background=True, notify_on_complete=True)


def _only_messages(request: Request) -> Step:
    return says("The spare one.") if request.wire == "messages" else fails(500)

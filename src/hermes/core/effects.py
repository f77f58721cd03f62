"""What a tool may do to the world, as values that the policy can read."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value


class RunCommand(Value, tag="run_command"):
    """A shell script, run by bash in `cwd`. `grants` are folders that it may change although they
    are outside of the workspace; the gate adds "/" to what somebody has allowed on purpose, and
    nothing confines it then."""

    script: str
    cwd: str
    background: bool = False
    grants: tuple[str, ...] = ()


class SignalProcess(Value, tag="signal_process"):
    """Input or an end to a background process that this session started. For "write", `text` is
    what the process reads next, and `command` what runs in it, in `cwd`: to a shell, text is a
    command."""

    process_id: str
    action: Literal["write", "close", "kill"]
    text: str = ""
    command: str = ""
    cwd: str = ""


class ReadPath(Value, tag="read_path"):
    """Paths in effects are absolute, with symbolic links resolved."""

    path: str


class WritePath(Value, tag="write_path"):
    path: str


class DeletePath(Value, tag="delete_path"):
    path: str


class FetchUrl(Value, tag="fetch_url"):
    url: str
    method: str = "GET"
    sends_body: bool = False


class ReadHistory(Value, tag="read_history"):
    """A look into past sessions of the same person."""

    query: str = ""


class Remember(Value, tag="remember"):
    """A change of what is known in later sessions: `target` is "memory" or "user"."""

    target: str
    action: Literal["add", "replace", "remove"]
    text: str


class ChangeSkill(Value, tag="change_skill"):
    """A change of what later sessions are told to do."""

    name: str
    action: str


class UseSecret(Value, tag="use_secret"):
    """A stored secret goes to `recipient`; its value is never seen here."""

    name: str
    recipient: str


class CallServer(Value, tag="call_server"):
    """A tool of a foreign server, with its arguments as JSON. `changes` is False where a trusted
    server says that it only reads: such calls may run side by side, but none is judged more mildly
    for what a server says of itself."""

    server: str
    tool: str
    arguments: str = "{}"
    changes: bool = True


class Draw(Value, tag="draw"):
    """A picture is made by `provider` at `host`, which gets to know the prompt and the pictures
    to go by; `images` are their names, not what is in them."""

    provider: str
    host: str
    prompt: str
    images: tuple[str, ...] = ()


class UseTool(Value, tag="use_tool"):
    """A call as a whole, with its arguments as JSON: what a person is asked about who wants to be
    asked about a tool, whatever it does."""

    name: str
    arguments: str = "{}"


Effect = (
    RunCommand
    | SignalProcess
    | ReadPath
    | WritePath
    | DeletePath
    | FetchUrl
    | ReadHistory
    | Remember
    | ChangeSkill
    | UseSecret
    | CallServer
    | Draw
    | UseTool
)

Principal = Literal["owner", "member", "guest", "system"]


class Allow(Value, tag="allow"):
    """`harmless` effects change nothing, so calls that have no others may run side by side.
    `lifted` ones would have been asked about, had not somebody allowed them beforehand."""

    harmless: bool = False
    reason: str = ""
    lifted: bool = False


class Ask(Value, tag="ask"):
    """`simple` is about one command that can be seen whole, so that a judge may answer it."""

    reason: str
    category: str
    scopes: tuple[str, ...] = ("once", "session", "always")
    simple: bool = False


class Deny(Value, tag="deny"):
    """`hardline` is never lifted, by no mode and no answer."""

    reason: str
    category: str
    hardline: bool = False


Decision = Allow | Ask | Deny
Scope = Literal["once", "session", "always"]


def subject(effect: Effect) -> str:
    """The part of an effect that a person wants to read before saying yes."""
    match effect:
        case RunCommand(script=script):
            return script
        case SignalProcess(process_id=process_id, action="write", text=text, command=command):
            return f"send to {process_id} ({command}): {text}"
        case SignalProcess(process_id=process_id, action=action):
            return f"{action} {process_id}"
        case ReadPath(path=path):
            return f"read {path}"
        case WritePath(path=path):
            return f"write {path}"
        case DeletePath(path=path):
            return f"delete {path}"
        case FetchUrl(url=url, method=method):
            return f"{method} {url}"
        case ReadHistory(query=query):
            return f"search past sessions for {query}" if query else "look into past sessions"
        case Remember(target=target, action=action, text=text):
            return f"{action} in {target}: {text}"
        case ChangeSkill(name=name, action=action):
            return f"{action} skill {name}"
        case UseSecret(name=name, recipient=recipient):
            return f"give {name} to {recipient}"
        case CallServer(server=server, tool=tool, arguments=arguments):
            return f"{server}: {tool} {arguments}"
        case Draw(provider=provider, host=host, prompt=prompt, images=images):
            by = f", going by {', '.join(images)}" if images else ""
            return f"draw with {provider} ({host}): {prompt}{by}"
        case UseTool(name=name, arguments=arguments):
            return f"{name} {arguments}"

"""The effects of tool calls, as values that the policy decides on."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value


class RunCommand(Value, tag="run_command"):
    """A shell script that bash runs in `cwd`."""

    script: str
    cwd: str
    background: bool = False
    # Folders outside of the workspace that it may change. The gate adds "/" to commands that a
    # person allowed; they run unconfined.
    grants: tuple[str, ...] = ()
    # Whether it runs without a network where commands are confined. The gate sets it.
    offline: bool = False


class SignalProcess(Value, tag="signal_process"):
    """Input to a background process of this session, or its end."""

    process_id: str
    action: Literal["write", "close", "kill"]
    # For "write": what the process reads next. To a shell, text is a command.
    text: str = ""
    # For "write": what runs in the process, and where.
    command: str = ""
    cwd: str = ""


class ReadPath(Value, tag="read_path"):
    """A read of a file or folder. Paths in effects are absolute, with symbolic links resolved."""

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
    """A search or read in past sessions of the same person."""

    query: str = ""


class Remember(Value, tag="remember"):
    """A change of the memory for later sessions. `target` is "memory" or "user"."""

    target: str
    action: Literal["add", "replace", "remove"]
    text: str


class ChangeSkill(Value, tag="change_skill"):
    """A change of the instructions for later sessions."""

    name: str
    action: str


class Schedule(Value, tag="schedule"):
    """A change of the scheduled jobs, which run while nobody is present. `text` is the schedule
    and the task of a new or changed job."""

    action: str
    text: str


class UseSecret(Value, tag="use_secret"):
    """A stored secret goes to `recipient`. The effect does not hold its value."""

    name: str
    recipient: str


class CallServer(Value, tag="call_server"):
    """A tool of an MCP server, with its arguments as JSON. `changes` is False when a trusted server
    declares the tool read-only. Such calls may run in parallel; the policy judges them no more
    leniently."""

    server: str
    tool: str
    arguments: str = "{}"
    changes: bool = True


class Draw(Value, tag="draw"):
    """The generation of an image by `provider`. `host` receives the prompt and the input images."""

    provider: str
    host: str
    prompt: str
    # The names of the input images, not their contents.
    images: tuple[str, ...] = ()


class UseTool(Value, tag="use_tool"):
    """A call as a whole, with its arguments as JSON. Used when a person wants to approve every call
    of a tool."""

    name: str
    arguments: str = "{}"


Effect = (
    RunCommand | SignalProcess | ReadPath | WritePath | DeletePath | FetchUrl | ReadHistory
    | Remember | ChangeSkill | Schedule | UseSecret | CallServer | Draw | UseTool
)  # fmt: skip

Principal = Literal["owner", "member", "guest", "system"]


class Allow(Value, tag="allow"):
    """The decision that an effect may happen."""

    # The effect changes nothing, so calls with no other effects may run in parallel.
    harmless: bool = False
    reason: str = ""
    # The effect would need approval if a person had not allowed it before.
    lifted: bool = False
    # The command runs new code that shows no use of a network, so it gets none.
    offline: bool = False


class Ask(Value, tag="ask"):
    """The decision that a person must approve an effect."""

    reason: str
    category: str
    scopes: tuple[str, ...] = ("once", "session", "always")
    # One command that is fully known, so that a model may answer for the person.
    simple: bool = False


class Deny(Value, tag="deny"):
    """The decision that an effect must not happen."""

    reason: str
    category: str
    # The denial holds in every mode and cannot be overridden.
    hardline: bool = False


Decision = Allow | Ask | Deny
# "folder": this kind of effect on files in the same folder, for the session.
Scope = Literal["once", "session", "folder", "always"]


def subject(effect: Effect) -> str:
    """Return the part of an effect that a person reads before approving it."""
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
            return f"search past sessions for {query}" if query else "read past sessions"
        case Remember(target=target, action=action, text=text):
            return f"{action} in {target}: {text}"
        case ChangeSkill(name=name, action=action):
            return f"{action} skill {name}"
        case Schedule(action=action, text=text):
            return f"{action} job: {text}"
        case UseSecret(name=name, recipient=recipient):
            return f"give {name} to {recipient}"
        case CallServer(server=server, tool=tool, arguments=arguments):
            return f"{server}: {tool} {arguments}"
        case Draw(provider=provider, host=host, prompt=prompt, images=images):
            by = f", going by {', '.join(images)}" if images else ""
            return f"generate an image with {provider} ({host}): {prompt}{by}"
        case UseTool(name=name, arguments=arguments):
            return f"{name} {arguments}"

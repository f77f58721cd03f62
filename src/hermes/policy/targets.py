"""What of an effect the owner's patterns are held against."""

from __future__ import annotations

from hermes.core.effects import (
    CallServer,
    ChangeSkill,
    DeletePath,
    Draw,
    Effect,
    FetchUrl,
    ReadHistory,
    ReadPath,
    Remember,
    RunCommand,
    SignalProcess,
    UseSecret,
    UseTool,
    WritePath,
)


def target(effect: Effect) -> str:
    match effect:
        case RunCommand(script=script):
            return script
        case ReadPath(path=path) | WritePath(path=path) | DeletePath(path=path):
            return path
        case FetchUrl(url=url):
            return url
        case SignalProcess(process_id=process_id):
            return process_id
        case ReadHistory(query=query):
            return query
        case Remember(text=text):
            return text
        case ChangeSkill(name=name) | UseSecret(name=name) | UseTool(name=name):
            return name
        case CallServer(server=server, tool=tool):
            return f"{server}/{tool}"
        case Draw(provider=provider, host=host):
            return f"{provider}/{host}"

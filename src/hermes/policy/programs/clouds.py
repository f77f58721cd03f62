"""Clouds, clusters, containers and forges: changing shared resources needs approval."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options, quote_words
from hermes.policy.exposure import SECRET_NAME
from hermes.policy.findings import Level
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import load_regex
from hermes.policy.programs.records import record_of
from hermes.policy.programs.running import own_program
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.shell.state import NOTHING, UNKNOWN, Stream

ESCAPES = load_regex("container_escape")


def check_docker(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    rest = options.operands
    if options.values("-H", "--host", "--context", "-c"):
        call.ask("remote_state", "It changes containers on another machine.")
    if call.name.endswith("-compose"):
        rest = ["compose", *rest]
    plain = [word for word in rest if not word.startswith("-")]
    if rest[:1] == ["compose"]:
        inner = Options(rest[1:], call.record.values, permute=False).operands
        plain = ["compose", *(word for word in inner if not word.startswith("-"))]
    if plain[:1] == ["run"] or plain[:2] == ["container", "run"]:
        return _run(call, rest[rest.index("run") + 1 :])
    if "exec" in plain[:2]:
        return _exec(call, rest[rest.index("exec") + 1 :])
    if plain[:1] == ["cp"]:
        _copy(call, plain[1:])
        return None
    if plain[:1] and plain[0] in ("save", "export"):
        call.writes(*Options(rest[1:], "-o --output").values("-o", "--output"))
    given = Options(rest, call.record.values)
    if "build" in plain[:2] or plain[:1] == ["compose"]:
        for name in given.values("-f", "--file"):
            own_program(call, name)
    if "build" in plain[:2]:
        call.reads_all(*given.operands[-1:])
        for place in filter(is_remote, plain[1:]):
            call.ask("remote_code", f"It builds {place}.")
    return check_subcommands(call.part(rest, name="docker"))


def _run(call: Call, words: list[str]) -> Stream | None:
    options = Options(words, record_of("docker:run").values, permute=False)
    before = words[: len(words) - len(options.operands)]
    if found := ESCAPES.search(" ".join(before)):
        call.ask("container", f"`{found[0]}` lets the container reach the machine.")
    mounts: dict[str, str] = {}
    for mount in options.values("-v", "--volume"):
        source, _, target = mount.partition(":")
        if source[:1] in "/.~" or UNKNOWN in source:
            mounts[target.partition(":")[0]] = source
    for mount in options.values("--mount"):
        fields = dict(part.partition("=")[::2] for part in mount.split(","))
        if fields.get("type", "bind") == "bind":
            source = fields.get("source") or fields.get("src") or UNKNOWN
            mounts[fields.get("target") or fields.get("dst") or "/"] = source
    for name in options.values("-e", "--env"):
        if SECRET_NAME.search(name):
            call.ask("credentials", f"It gives the secret ${name} to a container.")
    call.reads(*options.values("--env-file"))
    for source in mounts.values():
        call.reads(source)
        if not call.here(source):
            call.ask("container", f"It mounts {source}, outside the workspace.")
    call.work("network", "It may download an image, and runs a container.")
    _inside(call, options.operands[1:], mounts)
    return None


def _inside(call: Call, command: list[str], mounts: dict[str, str]) -> None:
    """Check what the container does to mounted folders, and whether it runs fetched code."""
    if command and not any(UNKNOWN in word for word in command):
        elsewhere = call.part(call.arguments, call.state.copy())
        elsewhere.state.cwd = UNKNOWN
        elsewhere.probes(
            quote_words(command), keep=lambda finding: finding.category == "remote_code"
        )
    translated = [_outside(word, mounts) for word in command]
    if command and translated != command:
        call.runs(translated)
    elif any(UNKNOWN in word for word in command):
        call.ask("unclear", "What the container runs is known only at run time.")


def _outside(word: str, mounts: dict[str, str]) -> str:
    for target, source in mounts.items():
        if target.strip("/"):
            place = rf"(?<![\w/]){re.escape(target.rstrip('/'))}(?=$|[/\s'\"*;)])"
            word = re.sub(place, (source.rstrip("/") or "/.").replace("\\", "/"), word)
    return word


def _exec(call: Call, words: list[str]) -> Stream | None:
    options = Options(words, "-e -u -w --env --user --workdir --env-file --index", permute=False)
    command = options.operands[1:]
    if options.has("--privileged") or options.value("-u", "--user") in ("root", "0"):
        call.ask("container", "It runs a privileged container.")
    before = len(call.follower.findings)
    if command:
        call.runs(command, NOTHING)
    if command[:1] in (["env"], ["printenv"], ["set"], ["export"]) and len(command) == 1:
        call.ask(
            "credentials", "It shows the environment of a container, which may contain secrets."
        )
    told = call.follower.findings[before:]
    if not command or any(each.level >= Level.ASKED for each in told):
        call.ask("container", "It runs a command inside a container.")
    call.work(reason="It inspects a container or runs something in it.")
    return None


def _copy(call: Call, names: list[str]) -> None:
    for name in names[:-1]:
        if ":" not in name:
            call.reads_all(name)
    if names and ":" not in names[-1]:
        call.writes(names[-1])
    else:
        call.ask("container", "It copies files into a container.")

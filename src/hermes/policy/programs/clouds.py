"""Clouds, clusters, containers and forges: changing what is shared is asked about."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options, quote_words
from hermes.policy.exposure import SECRET_NAME
from hermes.policy.findings import Finding, Level
from hermes.policy.outgoing import NEAR, is_remote
from hermes.policy.patterns import regex
from hermes.policy.programs.running import own_program
from hermes.policy.programs.subcommands import check_subcommands, only_looks
from hermes.policy.shell.state import NOTHING, UNKNOWN, Stream

ESCAPES = regex(
    r"--privileged|--(pid|net|network|ipc|uts|userns|cgroupns)[= ]host|--cap-add|--device"
    r"|--security-opt|--volumes-from|--cgroup-parent|docker\.sock|--group-add"
)
RUN_TAKING = """
    -v -e -p -w -u -h -l -m -a -c --volume --mount --env --publish --workdir --user --name
    --hostname --network --net --entrypoint --label --memory --cpus --env-file --platform --pid
    --ipc --uts --userns --cap-add --cap-drop --device --security-opt --add-host --dns --expose
    --restart --tmpfs --ulimit --log-driver --shm-size --gpus --pull --runtime --volumes-from
    --cidfile --ip --link --mac-address --stop-signal --isolation --group-add --health-cmd
"""
# `compose down` alone leaves volumes and images for the next `up`.
REMOVES_DATA = regex(r"-\w*v|--volumes|--rmi")


def check_docker(call: Call) -> Stream | None:
    words = call.arguments
    options = call.options(call.record.values, permute=False)
    rest = options.operands
    if options.values("-H", "--host", "--context", "-c"):
        call.ask("remote_state", "It works on containers of another machine.")
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
    if plain[:1] in (["load"], ["import"]) and call.stdin.origin == "network":
        call.ask("remote_code", "It takes in an image that comes from elsewhere.")
    if plain[:1] and plain[0] in ("save", "export"):
        call.writes(*Options(rest[1:], "-o --output").values("-o", "--output"))
    if plain[:1] == ["inspect"] and re.search(r"\.Env\b|Environment", " ".join(words)):
        call.ask("credentials", "It shows the variables of a container, secrets included.")
    if "build" in plain[:2]:
        for name in Options(rest, call.record.values).values("-f", "--file"):
            own_program(call, name)
        for folder in Options(rest, call.record.values).operands[-1:]:
            call.reads_all(folder)
    if "build" in plain[:2] and (places := [word for word in plain[1:] if is_remote(word)]):
        call.ask("remote_code", f"It builds what {places[0]} holds.")
    if plain[:1] == ["compose"]:
        for name in Options(rest, call.record.values).values("-f", "--file"):
            own_program(call, name)
    if "up" in plain[:2] and "--force-recreate" in words:
        call.ask("container", "It replaces running containers.")
    if "down" in plain[:2] and any(REMOVES_DATA.match(word) for word in words):
        call.ask("container", "It removes what containers of the project have stored.")
    return check_subcommands(call.part(rest, name="docker"))


def _run(call: Call, words: list[str]) -> Stream | None:
    options = Options(words, RUN_TAKING, permute=False)
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
            call.ask("container", f"It gives the container {source}, outside the workspace.")
    call.work("network", "It may fetch an image, and runs a container.")
    _inside(call, options.operands[1:], mounts)
    return None


def _inside(call: Call, command: list[str], mounts: dict[str, str]) -> None:
    """Judges what the container does to mounted folders, and whether it runs fetched code."""
    if command and not any(UNKNOWN in word for word in command):
        elsewhere = call.part(call.arguments, call.state.copy())
        elsewhere.state.cwd = UNKNOWN
        elsewhere.probes(quote_words(command), keep=_fetched)
    translated = [_outside(word, mounts) for word in command]
    if command and translated != command:
        call.runs(translated)
    elif any(UNKNOWN in word for word in command):
        call.ask("unclear", "What the container runs is only known when it runs.")


def _fetched(finding: Finding) -> bool:
    return finding.category == "remote_code"


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
        call.ask("container", "It runs inside a container with all rights.")
    before = len(call.follower.findings)
    if command:
        call.runs(command, NOTHING)
    if command[:1] in (["env"], ["printenv"], ["set"], ["export"]) and len(command) == 1:
        call.ask("credentials", "It shows the variables of a container, secrets included.")
    told = call.follower.findings[before:]
    if not command or any(each.level >= Level.ASKED for each in told):
        call.ask("container", "It runs a command inside a container.")
    call.work(reason="It looks into a container or works in it.")
    return None


def _copy(call: Call, names: list[str]) -> None:
    for name in names[:-1]:
        if ":" not in name:
            call.reads_all(name)
    if names and ":" not in names[-1]:
        call.writes(names[-1])
    else:
        call.ask("container", "It puts files into a container.")


def check_kubectl(call: Call) -> Stream | None:
    dry = any(re.fullmatch(r"--dry-run(=client|=server)?", word) for word in call.arguments)
    if dry and "delete" not in call.arguments:
        call.work("network", "It only shows what it would do.")
        return None
    options = call.options(call.record.values)
    verb = ":".join(options.operands[:3])
    if {"secret", "secrets"} & set(re.split(r"[:,/]", verb)[1:]):
        call.ask("credentials", "It shows secrets of the cluster.")
    if verb.startswith("config:view") and options.has("--raw"):
        call.ask("credentials", "It shows the keys of the cluster.")
    if verb.startswith("exec") and "--" in call.arguments:
        call.runs(call.arguments[call.arguments.index("--") + 1 :], NOTHING)
    return check_subcommands(call)


def check_aws(call: Call) -> None:
    words = call.options(
        "--region --profile --output --query --endpoint-url --cli-input-json --filters"
    ).operands
    service, verb = [*words, "", ""][:2]
    options = call.options("--endpoint-url --region --profile")
    if call.name == "awslocal" or NEAR.match(options.value("--endpoint-url") or ""):
        call.work(reason="It works on a likeness of the cloud on this machine.")
        return
    secret = re.search(
        r"secret|password|token(?!ize)|login|decrypt|credential|access-key|export|get-parameter",
        f"{service} {verb}",
    )
    reading = re.match(
        r"(?:admin-)?(describe|list|get|ls|head|batch-get|scan|query|lookup|search|help|wait|tail|validate)",
        verb,
    )
    if service == "configure" and verb not in ("list", "list-profiles"):
        call.ask("credentials", "It shows or changes the keys of the cloud.")
    elif secret and verb != "get-caller-identity" and not verb.startswith(("list-", "describe-")):
        call.ask("credentials", "It shows or changes keys and passwords of the cloud.")
    elif service == "s3" and verb in ("cp", "sync", "mv", "rm", "mb", "rb", "website", "presign"):
        call.reads_all(*(word for word in words[2:] if not word.startswith("s3://")))
        call.ask("remote_state", "It moves or deletes files of the cloud.")
    elif reading or not words or service in ("help", "--version"):
        call.work("network", "It looks at the cloud.")
    else:
        call.ask("remote_state", "It changes something in the cloud.")


# Lists names of secrets only.
NAMES_OF_SECRETS = regex(r"secrets?(?: versions)? (?:list|describe)\b")


def check_cloud(call: Call) -> None:
    """gcloud, az, doctl and others: the verb follows the nouns."""
    words = call.options(call.record.values).operands
    text = " ".join(words)
    if NAMES_OF_SECRETS.match(text):
        call.work("network", "It looks at the cloud.")
    elif re.search(
        r"print-\w*token|get-credentials|secrets?\b|keys?\b|login|password|auth:token", text
    ):
        call.ask("credentials", "It shows or changes keys of the cloud.")
    elif not words or only_looks(words[1:] or words):
        call.work("network", "It looks at the cloud.")
    else:
        call.ask("remote_state", "It changes something in the cloud.")


def check_gh(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    verb = ":".join(options.operands[:3])
    if verb.startswith("api"):
        method = (options.value("-X", "--method") or "GET").upper()
        if method != "GET" or options.has("-f", "-F", "--field", "--raw-field", "--input"):
            call.ask("remote_state", "It changes something on the forge.")
    if verb.startswith("auth:status") and options.has("--show-token", "-t"):
        call.ask("credentials", "It shows the token of the forge.")
    if verb.startswith("gist:create"):
        call.reads(*options.operands[2:])
    return check_subcommands(call)


def check_terraform(call: Call) -> Stream | None:
    # Its options have one dash.
    if any(word.startswith("-from-module") for word in call.arguments):
        call.ask("remote_code", "It takes in a module that comes from elsewhere.")
    words = [word for word in call.arguments if not re.match(r"-[a-z]", word)]
    return check_subcommands(call.part(words))

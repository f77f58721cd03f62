"""Tools of languages and of the system that fetch and install: what is new is a question."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.options import Options
from hermes.policy.programs.running import own_program
from hermes.policy.programs.stages import for_tests
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.programs.workers import ask_elsewhere
from hermes.policy.programs.wrappers import check_cargo_watch
from hermes.policy.shell.state import Stream

NEW = "package_install"


def check_cargo(call: Call) -> Stream | None:
    words = [word for word in call.arguments if not word.startswith("+")]
    options = Options(
        words, "--config -Z --color --target-dir --manifest-path -C -p --package --bin"
    )
    for setting in options.values("--config"):
        if re.search(r"runner|wrapper|rustc|linker|alias|rustdoc|source|registr", setting):
            call.ask("shell_escape", "It makes cargo use another program.")
    ask_elsewhere(call)
    call.writes(*options.values("--target-dir"))
    if words[:1] == ["publish"] and "-n" in words:
        call.work("network", "It only shows what it would do.")
        return None
    if words[:1] == ["watch"]:
        return check_cargo_watch(call.part(words))
    return check_subcommands(call.part(words, name="cargo"))


def check_go(call: Call) -> Stream | None:
    words = call.arguments
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if any(re.match(r"-(toolexec|exec|overlay|modfile|ldflags=.*-extld)", word) for word in rest):
        call.ask("shell_escape", "It makes go use another program.")
    names = [word for word in rest if not word.startswith("-")]
    if (
        verb == "run"
        and names
        and ("@" in names[0] or "://" in names[0] or re.match(r"[\w-]+\.[a-z]+/", names[0]))
    ):
        call.ask("remote_code", f"It fetches {names[0]} and runs it.")
    elif verb in ("run", "generate") and names and names[0].startswith(("/", "~", "..")):
        own_program(call, names[0])
    if verb == "env" and any(word in ("-w", "-u") for word in rest):
        call.ask("system_config", "It changes the settings of go.")
    if verb in ("get", "install") and any(not name.startswith(".") for name in names):
        call.ask(NEW, "It fetches new packages.")
    for place, word in enumerate(rest[:-1]):
        if word == "-o":
            call.writes(rest[place + 1])
    if verb in ("version", "env", "list", "doc", "help", "vet", "bug"):
        return None
    known = "build test run fmt mod generate clean tool work get install fix telemetry"
    if verb in known.split():
        ask_elsewhere(call)
        call.work("network", "It builds or fetches what the project names.")
    elif verb:
        call.ask("unknown_program", f"`go {verb}` is not known.")
    return None


def check_conda(call: Call) -> Stream | None:
    options = call.options("-f --file -n --name -p --prefix")
    files = options.values("-f", "--file")
    verb = options.operands[:2]
    if verb in (["env", "create"], ["env", "update"]) and files and all(map(call.here, files)):
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_conan(call: Call) -> Stream | None:
    names = call.options("-o -s -pr -if -of --build --options --settings --profile").operands
    places = names[1:]
    local = [each for each in places if each[:1] in "./" and "@" not in each and call.here(each)]
    if names[:1] == ["install"] and places and local == places:
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_versions(call: Call) -> Stream | None:
    """`install` alone installs what a file of the project names."""
    if call.arguments in (["install"], ["i"]) and call.here("."):
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_mix(call: Call) -> Stream | None:
    if call.arguments[:1] and call.arguments[0].startswith("ecto.") and for_tests(call):
        call.work(reason="It works on the database of the tests.")
        return None
    return check_subcommands(call)


def check_query(call: Call) -> Stream | None:
    """dpkg -l, rpm -qa, pacman -Q: the first option decides."""
    first = next((word for word in call.arguments if word.startswith("-")), "")
    if not first.startswith(tuple(call.record.looks.split())):
        call.ask(NEW, "It installs or removes packages.")
    return None

"""Build tools, migrations and editors: ordinary work inside the workspace."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.exposure import SECRET_NAME, check_secret_names
from hermes.policy.patterns import regex
from hermes.policy.programs.filters import looks_like_key
from hermes.policy.programs.project_tools import OUTWARD, check_worker, is_foreign
from hermes.policy.programs.running import is_fetched, own_program
from hermes.policy.shell.state import UNKNOWN, Stream

# Holds the prefix given to `configure`; no shell variable has such a name.
PREFIX = "configure --prefix"
# Recipe lines: after a tab in a makefile, after spaces or as a list item in similar files.
_RECIPE = regex(
    r"\t[\s@+-]*(\S.*)|  +(?:- |cmd: )*[@+-]*(?!\s|[\w.-]+\s*[:?+!]?=[^=])(\S.*)|- cmd: (.*)"
)
_ASSIGNED = regex(r"\s*(?:export |override |private )*([\w.-]+)\s*([+!?]|:{0,3})=\s*(.*)")
_SHELLS_OUT = regex(r"\$[({]shell ((?:[^()]|\([^()]*\))*)[)}]")
_REFERENCE = regex(r"\$\(([^()$]*)\)|\$\{([^{}$]*)\}|\$([\w@<^?*%+|])")
# Replaces a dollar of the shell while those of make are expanded.
HELD = "\ufffa"
MOST_TURNS = 5
INSTALLS = regex(r"^(un)?install(-(?!deps|dev|tool|dependenc|requirement|test|local)|$)")


def check_targets(call: Call) -> None:
    """make and other task runners: targets with outward names are asked about."""
    dry = ("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "--list", "--summary")
    if call.name in ("make", "gmake", "just", "task") and call.options("-f -C").has(*dry):
        call.work(reason="It is a dry run.")
        return
    check_worker(call)
    options = call.options(call.record.values)
    for name in options.values("-f", "--file", "--makefile", "--justfile", "-t", "--taskfile"):
        if name in ("-", "/dev/stdin"):
            _recipes(call, call.stdin)
        elif (written := call.state.files.get(call.path(name))) is not None:
            _recipes(call, written)
        else:
            own_program(call, name)
    for name in ("Makefile", "makefile", "GNUmakefile", "justfile", "Taskfile.yml"):
        if (written := call.state.files.get(call.path(name))) is not None:
            _recipes(call, written)
    folders = ("-C", "--directory", "--working-directory", "--dir")
    for folder in options.values(*folders, *(("-d",) if call.name in ("just", "task") else ())):
        if is_fetched(call, call.path(folder)):
            call.ask("remote_code", "It builds downloaded code.")
        elif not call.here(folder):
            call.ask("unknown_program", f"It runs {folder}, outside the workspace.")
    for text in options.values("--eval", "-E"):
        call.ask("shell_escape", "It adds a rule to make on the command line.")
        call.runs_text(text.partition(";")[2] or text)
    for word in options.operands:
        if re.match(r"(SHELL|MAKE|CC|CXX|LD|AR)=", word) and "/" in word:
            own_program(call, word.partition("=")[2])
        if OUTWARD.match(word):
            call.ask("remote_state", f"`{word}` seems to change something remote.")
        if INSTALLS.match(word) and call.name in ("make", "gmake", "ninja", "meson", "just"):
            _check_install_target(call, word, options.operands)


def _check_install_target(call: Call, target: str, words: list[str]) -> None:
    """The target folder is given here or was given to `configure`."""
    places = [
        word.partition("=")[2] for word in words if re.match(r"(DESTDIR|PREFIX|prefix)=", word)
    ]
    places += call.state.variables.get(PREFIX, ())
    if not places or not all(map(call.here, places)):
        call.ask("overwrite", f"`{target}` installs files into system folders.")
    call.writes(*places)


def _recipes(call: Call, rules: Stream) -> None:
    """Follows the recipes of a makefile that is input, new, or written by this script."""
    if not rules.known:
        call.ask("obfuscated", "It follows rules that are known only at run time.")
    known: dict[str, str] = {}
    defining = False
    for line in rules.text.replace("\\\n", " ").split("\n"):
        defining = line.startswith("define ") or (defining and not line.startswith("endef"))
        for script in _SHELLS_OUT.findall(line):
            call.runs_text(_for_shell(script, known))
        if recipe := _RECIPE.match(line):
            call.runs_text(_for_shell(next(filter(None, recipe.groups()), ""), known))
        elif defining and not line.startswith("define "):
            call.runs_text(_for_shell(line.lstrip("@+-"), known))
        elif assigned := _ASSIGNED.match(line):
            name, how, value = assigned.groups()
            known[name] = f"{known.get(name, '')} {value}".strip() if how == "+" else value
            if how == "!":
                call.runs_text(_for_shell(value, known))
        elif ";" in line and ":" in line:
            call.runs_text(_for_shell(line.partition(";")[2], known))


def _for_shell(line: str, known: dict[str, str]) -> str:
    """A line of a recipe as make gives it to a shell."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name = found[1] or found[2] or found[3] or ""
        if name.startswith("shell "):
            return f"$({name[6:]})"
        return known.get(name, UNKNOWN)

    for _ in range(MOST_TURNS):
        expanded = _REFERENCE.sub(value, line.replace("$$", HELD))
        if expanded.replace(HELD, "$$") == line:
            break
        line = expanded.replace(HELD, "$$")
    return line.replace("$$", "$")


def check_java(call: Call) -> None:
    options = call.arguments
    for place, word in enumerate(options):
        following = (options[place + 1 : place + 2] or [""])[0]
        if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path"):
            for part in following.split(":"):
                if is_foreign(call, part):
                    own_program(call, part)
        if word.startswith(("-javaagent", "-agentpath", "-agentlib")):
            call.ask("shell_escape", "It loads code into Java.")
        if word == "-jar" and place + 1 < len(options):
            own_program(call, options[place + 1])
    call.work(reason="It runs a program of the project.")


ENVIRONMENT = regex(r"\b(?:str)?env(?:\.|\[\W?|\()(\w+)")


def check_jq(call: Call) -> Stream | None:
    code = " ".join(call.arguments)
    check_secret_names(call, code)
    for found in ENVIRONMENT.finditer(code):
        if SECRET_NAME.search(found[1]):
            call.ask("credentials", f"It shows the secret in ${found[1]} holds.")
    options = call.options(call.record.values)
    call.reads(*options.operands[1:], *options.values("-f", "--from-file"))
    in_place = call.name == "yq" and options.has("-i", "--inplace", "--in-place")
    if in_place:
        call.writes(*options.operands[1:])
    return Stream(text=UNKNOWN, origin=call.stdin.origin if len(options.operands) < 2 else "file")


def check_reader(call: Call) -> Stream | None:
    """Changes nothing and prints no file contents."""
    if call.name in ("locate", "plocate", "mlocate") and any(map(looks_like_key, call.arguments)):
        call.ask("credentials", "It searches for keys outside the workspace.")
    for option, name in zip(call.arguments, call.arguments[1:], strict=False):
        if re.match(r"--?(dump|out|write|save)", option):
            call.writes(name)
    return None

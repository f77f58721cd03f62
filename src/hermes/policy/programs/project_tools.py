"""Tools that may read a project, write into it and run its code, and do nothing beyond that."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.exposure import looks_like_key
from hermes.policy.outgoing import is_remote
from hermes.policy.path_effects import judge_write
from hermes.policy.patterns import load_regex, regex, word_list
from hermes.policy.places.places import is_inside
from hermes.policy.programs.running import is_fetched, own_program
from hermes.policy.programs.subcommands import SENDS, find_destroying_verb
from hermes.policy.shell.state import SOME, UNKNOWN, Stream

SETTINGS = ("DJANGO_SETTINGS_MODULE", "DJANGO_CONFIGURATION")
FOR_TESTS = regex(r"(?i)tests?|testing")
TEST_MODULE = regex(r"(?i)(?:[\w.]*[._])?tests?(?:ing)?(?:[._](?:settings|local|ci))?")
STAGE_OPTION = regex(r"--(?P<name>env|environment|settings)=(?P<value>\S+)|(?P<word>[A-Z_]+)=(\S+)")
# They name a database, whatever the stage.
ADDRESS = regex(r"(?i)(?:DATABASE|DB|MYSQL|PG|POSTGRES|MONGO|REDIS)\w*(?:URL|URI|DSN|HOST|ADDR)$")


def targets_tests(call: Call) -> bool:
    """Whether variables or arguments select the test stage, and nothing contradicts."""
    variables = {name: values for name, values in call.state.variables.items() if name.isupper()}
    matches = [found for word in call.arguments if (found := STAGE_OPTION.fullmatch(word))]
    for found in matches:
        if found["word"]:
            variables[found["word"]] = (*variables.get(found["word"], ()), found[4])
    if any(ADDRESS.search(name) for name in variables):
        return False
    stages = [value for name in word_list("stage_variables") for value in variables.get(name, ())]
    modules = [value for name in SETTINGS for value in variables.get(name, ())]
    for found in matches:
        if found["name"] == "settings":
            modules.append(found["value"])
        elif found["name"]:
            stages.append(found["value"])
    named = [FOR_TESTS.fullmatch(each) for each in stages]
    named += [TEST_MODULE.fullmatch(each) for each in modules]
    return bool(named) and all(named)


OUTPUT = load_regex("output_option")
OUTWARD = load_regex("outward_target")
CODE_OPTIONS = load_regex("code_loading_option")
HANDED_OVER = load_regex("inner_shell")
# Other options that name an output.
GOES = regex(r"^--?[\w-]*(?:out|dest|target|prefix|log|write|save|filename)[\w-]*=(.+)$")


EDITING = regex(r"^(--write|--fix|--in-?place|-i|-w|--fix-type|--autocorrect|-A)$")
HARMLESS_OPTION = load_regex("data_option")
CODE_SEARCH = regex(r"^(-B|--rulesdir|--plugin-dir|--lua-dir|--rootdir|--prefix-dir)$")
OPEN_TO_ALL = regex(
    r"\.(token|password)=(''|\"\")?( |$)|--(no-auth|auth[= ]none|insecure)\b|--host( -|$)"
)
ALL_INTERFACES = regex(
    r"(^|[ =])(0\.0\.0\.0|\[?::\]?)(:\d+)?( |$)|(-b|--bind|--addr|--listen)[= ]:\d"
)
CODE_FILE = regex(r"(?i)\.(git|py|js|mjs|ts|sh|rb|r|jar|go|pl|php|lua|whl|tgz|zip)(#.*)?$")


def ask_if_foreign_folder(call: Call) -> None:
    """Ask for approval if the current folder, whose code a tool runs, is not the project's."""
    cwd = call.state.cwd
    if UNKNOWN in cwd or SOME in cwd:
        return
    if is_fetched(call, cwd):
        call.ask("remote_code", "It builds or runs downloaded code.")
    elif is_foreign(call, cwd):
        call.ask("unknown_program", f"It builds or runs files in {cwd}, outside the workspace.")


def check_worker(call: Call) -> Stream | None:
    ask_if_foreign_folder(call)
    call.work(reason=f"`{call.name}` works in the project.")
    words = call.arguments
    _check_words(call, words)
    if any(CODE_OPTIONS.match(word) or HANDED_OVER.search(word) for word in words):
        call.ask("shell_escape", f"It makes `{call.name}` run another program.")
    orders = [] if call.name == "dotnet" else call.options().operands[:2]
    order = "" if "tests" in call.record.flags else find_destroying_verb(orders)
    if order and not (order.startswith("db:") and targets_tests(call)):
        call.ask("remote_state", f"`{order}` seems to delete something permanently.")
    files = re.compile(r"\.(ya?ml|json|toml|[jt]sx?|py|sh|tf|md|txt|xml)$")
    outward = (each for each in orders if OUTWARD.match(each) and not files.search(each))
    if target := next(outward, ""):
        call.ask("remote_state", f"`{target}` seems to change something remote.")
    if any(SENDS.match(word) for word in words):
        call.ask("remote_state", f"`{call.name}` publishes its output.")
    _reaches_out(call, words)
    for index, word in enumerate(words):
        if goes := GOES.match(word):
            call.writes(goes[1])
        found = OUTPUT.match(word)
        if found:
            target = found[1] if found[1] is not None else (words[index + 1 : index + 2] or [""])[0]
            if target[:1] in "/~." and target:
                call.writes(target)
                call.state.own.add(call.path(target))
        elif word.startswith("-o") and call.name in ("gcc", "g++", "cc", "clang", "clang++"):
            call.writes(word[2:])
        elif word[:1] != "-":
            call.reads(word)
    _check_last_operand(call)
    if "last_is_output" in call.record.flags and words:
        if is_remote(words[-1]):
            call.ask("network_out", f"It sends its output to {words[-1]}.")
        call.writes(words[-1])
    return None


def _check_last_operand(call: Call) -> None:
    """Check the last of several operands: converters write there. Elsewhere than in the workspace,
    a new file is an output, and so is one that other programs run or obey."""
    operands = call.options(call.record.values).operands
    if len(operands) < 2 or operands[-1][:1] not in ("/", "~", "."):
        return
    path = call.path(operands[-1])
    if UNKNOWN in path or call.here(operands[-1]):
        return
    finding = judge_write(call.paths, path)
    obeyed = finding is not None and finding.category == "persistence"
    if obeyed or not call.paths.exists(path, unknown=True):
        call.writes(operands[-1])


def _reaches_out(call: Call, words: list[str]) -> None:
    """Ask about settings, plugins and tests from outside the project, and about edits there."""
    edits = "edits" in call.record.flags or any(EDITING.match(word) for word in words)
    for index, word in enumerate(words):
        option, value = _option(word, (words[index + 1 : index + 2] or [""])[0])
        data = HARMLESS_OPTION.search(option) and not CODE_SEARCH.match(option)
        if option and value.startswith("/dev/fd/") and is_fetched(call, value) and not data:
            call.ask("remote_code", f"`{option}` makes it follow remote instructions.")
        elif option and is_foreign(call, value) and not data:
            call.ask("unknown_program", f"`{option}` makes it use {value}, outside the workspace.")
        elif not option and is_foreign(call, word) and (index == 0 or words[index - 1][:1] != "-"):
            if "tests" in call.record.flags:
                call.ask("unknown_program", f"It runs {word}, outside the workspace.")
            elif edits:
                call.writes(word)


def _option(word: str, following: str) -> tuple[str, str]:
    """Return name and value of an option."""
    if word[:1] != "-":
        return "", ""
    if found := re.match(r"(-[A-Za-z])([/~].*)$|(--?[\w.-]+)=(.*)$", word):
        return found[1] or found[3], found[2] or found[4]
    return word, following


def is_foreign(call: Call, text: str) -> bool:
    """Whether a path belongs neither to the project nor to the system."""
    if text[:1] not in ("/", "~") and not text.startswith(".."):
        return False
    if text.startswith("//"):
        # An XPath expression.
        return False
    path = call.path(text)
    if UNKNOWN in path or call.here(text) or any(is_inside(path, each) for each in call.state.own):
        return False
    return call.paths.place(path) in ("scratch", "outside", "home")


def ask_if_open(call: Call, words: list[str]) -> None:
    """Ask about a server that listens on all interfaces."""
    if ALL_INTERFACES.search(" ".join(words)):
        call.ask("network_listen", "It lets everyone on the network use this machine.")


def _check_words(call: Call, words: list[str]) -> None:
    """Ask about recording, open servers and remote code."""
    ask_if_open(call, words)
    if OPEN_TO_ALL.search(" ".join(words)):
        call.ask("network_listen", "It lets everyone on the network use this machine.")
    for word in words:
        if is_remote(word) and CODE_FILE.search(word):
            call.ask("remote_code", f"It runs {word}, which was downloaded.")


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
    """Check make and other task runners: targets whose names suggest an effect outside the project
    need approval."""
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
    """Check the target folder, which is given here or was given to `configure`."""
    places = [
        word.partition("=")[2] for word in words if re.match(r"(DESTDIR|PREFIX|prefix)=", word)
    ]
    places += call.state.variables.get(PREFIX, ())
    if not places or not all(map(call.here, places)):
        call.ask("overwrite", f"`{target}` installs files into system folders.")
    call.writes(*places)


def _recipes(call: Call, rules: Stream) -> None:
    """Follow the recipes of a makefile that is input, new, or written by this script."""
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
    """Return a line of a recipe as make gives it to a shell."""

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
    for index, word in enumerate(options):
        following = (options[index + 1 : index + 2] or [""])[0]
        if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path"):
            for part in following.split(":"):
                if is_foreign(call, part):
                    own_program(call, part)
        if word.startswith(("-javaagent", "-agentpath", "-agentlib")):
            call.ask("shell_escape", "It loads code into Java.")
        if word == "-jar" and index + 1 < len(options):
            own_program(call, options[index + 1])
    call.work(reason="It runs a program of the project.")


def check_reader(call: Call) -> Stream | None:
    """Check a tool that changes nothing and prints no file contents."""
    if call.name in ("locate", "plocate", "mlocate") and any(map(looks_like_key, call.arguments)):
        call.ask("credentials", "It searches for keys outside the workspace.")
    for option, name in zip(call.arguments, call.arguments[1:], strict=False):
        if re.match(r"--?(dump|out|write|save)", option):
            call.writes(name)
    return None

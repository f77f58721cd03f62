"""What any tool of a project may do: read it, write into it, run its code, and nothing beyond."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import load_regex, regex, word_list
from hermes.policy.places.places import is_inside
from hermes.policy.programs.running import is_fetched
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
    given = {name: values for name, values in call.state.variables.items() if name.isupper()}
    matches = [found for word in call.arguments if (found := STAGE_OPTION.fullmatch(word))]
    for found in matches:
        if found["word"]:
            given[found["word"]] = (*given.get(found["word"], ()), found[4])
    if any(ADDRESS.search(name) for name in given):
        return False
    stages = [value for name in word_list("stage_variables") for value in given.get(name, ())]
    modules = [value for name in SETTINGS for value in given.get(name, ())]
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
OPEN_TO_ALL = regex(r"\.(token|password)=(''|\"\")?( |$)|--(no-auth|auth[= ]none|insecure)\b")
CODE_FILE = regex(r"(?i)\.(git|py|js|mjs|ts|sh|rb|r|jar|go|pl|php|lua|whl|tgz|zip)(#.*)?$")


def ask_if_foreign_folder(call: Call) -> None:
    """Asks if the current folder, whose code a tool runs, is not the project's."""
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
    for place, word in enumerate(words):
        if goes := GOES.match(word):
            call.writes(goes[1])
        found = OUTPUT.match(word)
        if found:
            target = found[1] if found[1] is not None else (words[place + 1 : place + 2] or [""])[0]
            if target[:1] in "/~." and target:
                call.writes(target)
                call.state.own.add(call.path(target))
        elif word.startswith("-o") and call.name in ("gcc", "g++", "cc", "clang", "clang++"):
            call.writes(word[2:])
        elif word[:1] != "-":
            call.reads(word)
    if "last_is_output" in call.record.flags and words:
        if is_remote(words[-1]):
            call.ask("network_out", f"It sends its output to {words[-1]}.")
        call.writes(words[-1])
    return None


def _reaches_out(call: Call, words: list[str]) -> None:
    """Asks about settings, plugins and tests from outside the project, and about edits there."""
    edits = "edits" in call.record.flags or any(EDITING.match(word) for word in words)
    for place, word in enumerate(words):
        option, value = _option(word, (words[place + 1 : place + 2] or [""])[0])
        data = HARMLESS_OPTION.search(option) and not CODE_SEARCH.match(option)
        if option and value.startswith("/dev/fd/") and is_fetched(call, value) and not data:
            call.ask("remote_code", f"`{option}` makes it follow remote instructions.")
        elif option and is_foreign(call, value) and not data:
            call.ask("unknown_program", f"`{option}` makes it use {value}, outside the workspace.")
        elif not option and is_foreign(call, word) and (place == 0 or words[place - 1][:1] != "-"):
            if "tests" in call.record.flags:
                call.ask("unknown_program", f"It runs {word}, outside the workspace.")
            elif edits:
                call.writes(word)


def _option(word: str, following: str) -> tuple[str, str]:
    """The name and the value of an option."""
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


def _check_words(call: Call, words: list[str]) -> None:
    """Asks about recording, open servers and remote code."""
    text = " ".join(words)
    if OPEN_TO_ALL.search(text):
        call.ask("network_listen", "It lets everyone on the network use this machine.")
    for word in words:
        if is_remote(word) and CODE_FILE.search(word):
            call.ask("remote_code", f"It runs {word}, which was downloaded.")

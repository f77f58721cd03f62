"""awk, sed and editors: small languages that can run commands and write files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.call import Call
from hermes.policy.exposure import check_secret_names
from hermes.policy.patterns import load_regex, regex
from hermes.policy.programs.python_code import strings
from hermes.policy.programs.running import own_program
from hermes.policy.programs.script_code import check_code, check_endless_starts
from hermes.policy.shell.state import ANYTHING, UNKNOWN, Stream

# A command whose output is read: a literal or a variable; concatenations are unknown.
GETLINE = regex(
    r"(?:(?:^|[;{}(!&|\n])[ \t]{0,8}(?:\"((?:[^\"\\]|\\.)*)\"|([A-Za-z_]\w*)))?"
    r"[ \t]{0,8}\)?[ \t]{0,8}\|&?[ \t]{0,8}getline"
)


def check_awk(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    files = options.operands
    for name in options.values("-f", "--file"):
        own_program(call, name)
    if not options.values("-f", "--file"):
        code, files = (files[0] if files else ""), files[1:]
        # A value given by an option is like an assignment in the code.
        given = "".join(_as_assignment(each) for each in options.values("-v", "--assign"))
        _awk_code(call, given + code)
    call.reads(*(each for each in files if "=" not in each))
    origin = call.stdin.origin if not files else "file"
    return Stream(text=UNKNOWN, origin=origin)


def _as_assignment(text: str) -> str:
    name, _, value = text.partition("=")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}";' if UNKNOWN not in value else ""


def _awk_code(call: Call, code: str) -> None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is known only at run time.")
    check_secret_names(call, code)
    texts = dict(re.findall(r"\b(\w+)\s*=\s*\"((?:[^\"\\]|\\.)*)\"\s*(?=[;})\n]|$)", code))
    for found in re.finditer(r"\bsystem\s*\(\s*(?:\"((?:[^\"\\]|\\.)*)\"|(\w+)\s*\))?", code):
        text = found[1] if found[1] is not None else texts.get(found[2] or "", UNKNOWN)
        call.runs_text(text.replace('\\"', '"'))
    for found in re.finditer(r"\|&?\s*\"((?:[^\"\\]|\\.)*)\"", code):
        call.runs_text(found[1].replace('\\"', '"'), ANYTHING)
    for found in GETLINE.finditer(code):
        text = found[1] if found[1] is not None else texts.get(found[2] or "", UNKNOWN)
        call.runs_text(text.replace('\\"', '"'), ANYTHING)
    if re.search(r"\bsystem\b|\|", code):
        for text in strings(code):
            call.probes(text)
    bare = re.sub(r"/(?:[^/\\\n]|\\.)*/", "//", code)
    for found in re.finditer(r"print[^;}\n]*?>{1,2}\s*(\"([^\"]*)\"|[\w$]+)", bare):
        call.writes(found[2] if found[2] is not None else UNKNOWN)
    # A literal may be a file for `getline`.
    call.reads(*(text for text in strings(code) if re.fullmatch(r"[~/.][\w./~-]{3,200}", text)))
    if "ENVIRON" in code:
        call.reads(*("~" + text for text in strings(code) if re.match(r"/[\w.]", text)))
    check_endless_starts(call, code)
    if "/inet/" in code:
        call.ask("network_out", "Its code connects to another machine.")


def check_sed(call: Call) -> Stream | None:
    options = call.options("-e -f -l --expression --file --line-length")
    scripts = options.values("-e", "--expression")
    files = options.operands
    for name in options.values("-f", "--file"):
        own_program(call, name)
    if not scripts and not options.values("-f", "--file"):
        scripts, files = files[:1], files[1:]
    for script in scripts:
        _sed_script(call, script)
    if any(re.match(r"-[nErsuz]*i|--in-place", word) for word in call.arguments):
        call.writes(*files)
    else:
        call.reads(*files)
    return Stream(text=UNKNOWN, origin="file" if files else call.stdin.origin)


# Commands that take the rest of their line: a file or a command.
SED_COMMAND = regex(r"(?:^|[;{\n\d$,!])\s*([weWrR])(?:(?:\s+|(?=[/~]))([^\n;}]+)|\s*$)")


def _sed_script(call: Call, script: str) -> None:
    if UNKNOWN in script:
        # An unknown part is usually a value.
        script = script.replace(UNKNOWN, "x")
    for found in re.finditer(
        r"s(?P<d>[^\w\s\\])(?:\\.|(?!(?P=d)).)*(?P=d)((?:\\.|(?!(?P=d)).)*)(?P=d)(\w*)(?:\s*(\S+))?",
        script,
    ):
        if "e" in found[3]:
            call.ask("shell_escape", "Its script runs the result of its replacement.")
            call.runs_text(re.sub(r"\\(.)", r"\1", found[2]))
        if "w" in found[3] and found[4]:
            call.writes(found[4])
    bare = re.sub(r"([sy])([^\w\s\\])(?:\\.|(?!\2).)*\2(?:\\.|(?!\2).)*\2[gpiIm0-9]*", "", script)
    bare = re.sub(r"(^|[;{,!\n]\s*)/(?:[^/\\]|\\.)*/", r"\1", bare)
    for found in re.finditer(
        r"(?:^|[;{\n\d$,!])\s*([weWrR])(?:(?:\s+|(?=[/~]))([^\n;}]+)|\s*$)", bare
    ):
        if found[1] in "wW" and found[2]:
            call.writes(found[2])
        elif found[1] in "rR" and found[2]:
            call.reads(found[2])
        elif found[1] == "e":
            call.ask("shell_escape", "Its script runs a command.")
            call.runs_text(found[2] or UNKNOWN)


LIKE_VI = frozenset("vim vi nvim ex view gvim vimdiff rvim rview evim".split())
PLAIN_EDITS = regex(r"^:?(%?s\W|\d+$|wq?a?!?$|qa?!?$|x$|set |g!?/|v/|\$|normal |sort|retab|noh)")
# Functions of emacs that convert or check the open file.
PLAIN_FUNCTIONS = regex(
    r"(?:ert-run-\S+|batch-(?:byte|native)-\S+|checkdoc\S*|package-lint\S*|byte-compile-file"
    r"|byte-recompile-\S+|org-[\w-]+-export-(?:to|as)-[\w-]+|org-export-dispatch|save-buffer"
    r"|kill-emacs|indent-region|untabify|whitespace-cleanup|delete-trailing-whitespace)"
)
LIBRARIES = regex(r"ert|org|ox(?:-\w+)*|bytecomp|package-lint|checkdoc")
PLAIN_FORM = regex(
    rf"\(\s*(?:require\s+'[\w-]+|{PLAIN_FUNCTIONS.pattern}(?:\s+[\w.\"/:'-]+)*)\s*\)"
)
COMMAND_OPTIONS = frozenset(
    "-c --cmd --eval -eval -execute -S -u -l --load -f --funcall --execute -s".split()
)
COMMAND_PREFIXES = ("--eval=", "--load=", "--cmd=", "--execute=", "--funcall=")
# vi accepts -c behind other letters and joined to its value: -sc, -cx.
GROUPED = regex(r"-[eEsnNRmMbZv]*c(.*)", re.DOTALL)
SUBSTITUTION = regex(
    r"s([^\w\s\\|\"])((?:\\.|(?!\1)[^\\])*)\1((?:\\.|(?!\1)[^\\])*)(?:\1[&cegiInp#lr]*|$)"
)
# A command behind `!`, alone or as a filter.
RUN = regex(
    r"(?m)(?:^|(?<=[|:]))[ \t]*(?:sil\w*!?[ \t]+)?"
    r"(?P<lines>(?:[%.$\d,;+-]|'[a-z<>\[\]]|/[^/\n]*/)*)[ \t]*"
    r"(?:(?:r|re|rea|read|e|edit)[ \t]*|(?:w|wr|write)[ \t]+)?!+[ \t]*(?P<command>[^\s!].*)"
)
# Selects lines: `g/pattern/`.
CHOOSING = regex(r"(?m)(^|[|:])[ \t]*[%\d,.$]*[gv]!?/(?:\\.|[^/\\\n])*/")
STARTS = load_regex("vi_starts_program")


def check_editor(call: Call) -> None:
    # For ed and ex, -s means silent.
    quiet = call.name in ("ed", "ex")
    words = [word for word in call.arguments if not (quiet and word == "-s")]
    told, names = _split_commands(words, grouped=call.name in LIKE_VI)
    for text in told:
        _order(call, text)
    call.writes(*names)
    if call.stdin.known:
        for lines, command in commands_in(call.stdin.text):
            _runs(call, command, filters=lines)


def _order(call: Call, text: str) -> None:
    if call.name == "emacs" and text.endswith(".el") and UNKNOWN not in text:
        own_program(call, text)
        return
    found = list(commands_in(text)) if call.name != "emacs" else []
    for lines, command in found:
        _runs(call, command, filters=lines)
    if not (found or _plain(call.name, text)) or _starts(text):
        call.ask("shell_escape", "It makes an editor run a command.")
        check_code(call, text, backticks=False)
        if "delete-directory" in text or "delete-file" in text:
            call.deletes(*(each for each in strings(text) if each), recursive=True)


def _runs(call: Call, command: str, *, filters: bool) -> None:
    """Check a command that an editor runs: a filter edits lines; any other command needs
    approval."""
    if not filters:
        call.ask("shell_escape", "It makes an editor run a command.")
    call.runs_text(command, ANYTHING)


def commands_in(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the commands that an editor command runs, and whether they filter lines."""
    for found in RUN.finditer(_bare(text)):
        yield bool(found["lines"]), found["command"]


def _bare(text: str) -> str:
    """Return the text without search patterns."""
    return CHOOSING.sub(r"\1", SUBSTITUTION.sub("s///", text))


def _plain(name: str, text: str) -> bool:
    if text in ("NONE", "NORC", "DEFAULTS"):
        return True
    if name == "emacs":
        named = PLAIN_FUNCTIONS.fullmatch(text) or LIBRARIES.fullmatch(text)
        return bool(named or PLAIN_FORM.fullmatch(text.strip()))
    return bool(PLAIN_EDITS.match(text))


def _starts(text: str) -> bool:
    """Whether plain editing starts a program."""
    replaced = "".join(found[3] for found in SUBSTITUTION.finditer(text))
    bare = _bare(text)
    typed = bare.lstrip(":").startswith("norm") and re.search(r"[:!]", bare.lstrip(":"))
    return bool("\\=" in replaced or typed or STARTS.search(bare))


AT_LINE = regex(r"\+\d*(?:[,:]\d+)?")


def _split_commands(words: list[str], *, grouped: bool) -> tuple[list[str], list[str]]:
    """Return the commands for an editor, and the files it opens."""
    told, names = list[str](), list[str]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        together = GROUPED.fullmatch(word) if grouped else None
        if word.startswith("+"):
            told += [] if AT_LINE.fullmatch(word) else [word[1:]]
        elif together and together[1]:
            told.append(together[1])
        elif (word in COMMAND_OPTIONS or together) and rest:
            told.append(rest.pop(0))
        elif word.startswith(COMMAND_PREFIXES):
            told.append(word.partition("=")[2])
        elif not word.startswith("-"):
            names.append(word)
    return told, names

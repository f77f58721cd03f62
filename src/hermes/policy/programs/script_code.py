"""Checks code of other languages by their functions for running, deleting, writing, sending."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from hermes.codec.values import Value
from hermes.policy.call import Call, split_words
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import load_regex, regex
from hermes.policy.programs.python_code import strings
from hermes.policy.programs.running import own_program
from hermes.policy.shell.state import UNKNOWN

# Written by scripts/generate_policy.py.
CODE_RULES = Path(__file__).parents[1] / "code_rules.json"
LUA = frozenset(("lua", "luajit", "texlua"))
LONG = regex(r"\[(=*)\[((?:[^\[\]]|\[(?!=*\[)|\](?!=*\])){0,2000})\]\1\]")
SIGIL = (
    r"(?:\(([^()]{0,2000})\)|\{([^{}]{0,2000})\}|\[([^\[\]]{0,2000})\]|<([^<>]{0,2000})>"
    r"|([|/!])((?:(?!\5).){0,2000})\5)"
)
# Where a literal may begin: not in `s/q(x)/y/` and `$h{q}`.
BEGINS = r"(?:(?<=[\s(,=\[{])|^)"
SIGILS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("perl", "raku"), regex(rf"{BEGINS}qq?\s?{SIGIL}")),
    "ruby": regex(rf"{BEGINS}\*?%[qQ]{SIGIL}"),
    **dict.fromkeys(("elixir", "iex"), regex(rf"{BEGINS}~[csCS]{SIGIL}")),
}
WORDS = regex(rf"{BEGINS}\*?%[wW]{SIGIL}")
PREFIX = regex(r"~[csCS](?=['\"])")
EVALUATES = load_regex("code_evaluates")
EVALUATED = regex(r"(?<![.\w:])(?:evaluate|eval\w*)\s*\(")
TAKEN_IN = load_regex("code_loads_file")
IMPORTS = load_regex("code_imports_url")


def usual_quotes(name: str, code: str) -> str:
    """Return the code with all literals in common quotes."""
    if name in LUA:
        return LONG.sub(lambda found: _quote(found[2]), code)
    if name == "ruby":
        code = WORDS.sub(lambda found: ", ".join(map(_quote, _inside(found).split())), code)
    if sigil := SIGILS.get(name):
        return sigil.sub(lambda found: _quote(_inside(found)), PREFIX.sub("", code))
    return code


def _inside(found: re.Match[str]) -> str:
    return next((found[group] for group in (1, 2, 3, 4, 6) if found[group] is not None), "")


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "; ")
    return f'"{escaped}"'


def check_taken_in(call: Call, code: str, bare: str, *, fetches: bool) -> None:
    """Check code that is loaded from elsewhere; `fetches` means that its commands fetch
    something."""
    for found in TAKEN_IN.finditer(code):
        own_program(call, found[2])
    urls = (
        text for text in strings(code) if re.match(r"(?:https?|ftp)://", text) and is_remote(text)
    )
    imports = IMPORTS.search(code)
    if imports and imports[2] in ("data:", "blob:"):
        call.ask("obfuscated", "Its code runs code hidden in a URL.")
    elif imports and (imports[2] in ("npm:", "jsr:") or is_remote(imports[1])):
        call.ask("remote_code", "Its code runs downloaded code.")
    elif (fetches and EVALUATES.search(bare)) or (EVALUATED.search(bare) and any(urls)):
        call.ask("remote_code", "Its code runs what it downloads.")


QUOTED = regex(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
# The literals after one of these are a command and its words.
RUNNER = r"""(?: \b(?: system | exec | execSync | execFile | execFileSync | execl | execv | execvp
    | spawn | spawnSync | popen | popen2 | popen3 | shell_exec | passthru | proc_open | pcntl_exec
    | os\.execute | io\.popen | capture2e? | capture3 | Open3\.\w+ | Kernel\.\w+ | run | shell
    | Deno\.Command | getRuntime\(\)\.exec | ProcessBuilder | shell-command
    | sh | Sys\.command | exec\.Command | Process\.\w+ | Command::new
    | shell-command-to-string | call-process | start-process | System\.(?:cmd|shell) | os[:.]cmd
    | pipe | unix | run-program | launch-program | open_process\w* | callCommand | readProcess
    | system\* | open-(?:input-|output-|input-output-)?pipe )
    | do\s+shell\s+script )"""
STRING = r"""(?: '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )"""
RUNS = regex(
    rf"(?x) {RUNNER} \s* [(\[{{,]* \s* [(\[]* \s*"
    rf"({STRING} (?: [\s,\[\]{{]* (?:\w+\s*:)? [\s\[]* {STRING} )*)"
)
# The same, with the command before the word that runs it.
SENT = regex(
    rf"(?x) ({STRING} (?: \s*,\s* {STRING} ){{0,12}}) \s* \]? \s*"
    r"\. \s* (?: execute\s*\( | !!? (?![=\w]) )"
)
QW = regex(rf"(?x) {RUNNER} \s* \(? \s* qw \s* [(\[{{<|/] ([^)\]}}>|/]*(?:/[^)\]}}>|]*)*)")
STARTS = load_regex("code_starts_program")
BACKTICKS = regex(
    r"`([^`]*)`|(?:\bqq?x|%x)\s*(?:\{([^}]*)\}|\(([^)]*)\)|\[([^\]]*)\]|<([^>]*)>|([/|!#~])(.*?)\6)",
    re.DOTALL,
)
PERL_OPEN = regex(r"\bopen\b[^;]*['\"]\s*(\||[+>]?>)|\bopen\b[^;]*\|\s*['\"]")
OPENED = regex(r"\+?>{1,2}\s*[/~\w.]")
HOME = load_regex("code_home_folder")
# A template that runs as a command, in zx and Bun.
TAGGED = regex(r"(?<![\w'\"])(?:Bun\.)?\$(?:\.\w+|\([^()`]*\))?`([^`]*)`")
MOST_PLACES = 40
TEMPLATE = regex(r"`([^`$\n]+)`")
PUT_IN = regex(r"\$\{([^{}]*)\}")
# What follows the quoted words of a command when the home of the user is one of them.
JOINED = regex(r"\s*(?P<sign>\+|\.{1,2}|,|<>|(?=\())\s*(?P<rest>(?![\s'\"{])[^;)\]}]*)")
# Common words for deleting files, among other things.
REMOVES = regex(r"(?i)\b(?:rm|remove|delete|erase|trash|destroy)[\w/-]*!?\s*[(\s]")
REMOVES_HOME = regex(
    r"(?i)\b(?:rm|remove|delete|erase|trash|destroy)[\w/-]*!?\s*\(|\bfile\s+delete\b"
)
PLACE = regex(r"(?<=\s)(?:~|/[\w.~-]+)/[\w./~-]+")


class CodeRule(Value, forbid_unknown_fields=True):
    """One rule of code_rules.toml, which explains the fields."""

    expression: str
    category: str
    reason: str = ""
    does: Literal["ask", "never", "writes", "deletes"] = "ask"
    where: Literal["bare", "code"] = "bare"
    names: str = ""


@cache
def code_rules() -> tuple[tuple[CodeRule, re.Pattern[str]], ...]:
    found = msgspec.json.decode(CODE_RULES.read_bytes(), type=list[CodeRule])
    return tuple((rule, regex(rule.expression)) for rule in found)


def check_code(call: Call, code: str, *, backticks: bool) -> None:
    """Check code of a language. `backticks` run a command in the language; elsewhere they only
    quote."""
    call.work(reason=f"It runs inline code with {call.name}.")
    code = usual_quotes(call.name, code)
    bare = QUOTED.sub(lambda found: found[0][0] + found[0][-1], code)
    if not backticks:
        bare = re.sub(r"`[^`]*`", "``", bare)
    ran, fetches = _run_texts(call, code, backticks=backticks)
    if STARTS.search(code):
        if not ran:
            call.ask("shell_escape", "Its code runs other commands.")
        _probe(call, code)
    check_taken_in(call, code, bare, fetches=fetches)
    _look_for_patterns(call, code, bare, ran=ran)
    check_secret_names(call, code)
    _check_removals(call, code, bare)
    if call.name == "tclsh":
        for found in re.finditer(r"\bexec\s+([^\n;\]]+)", code):
            call.runs_text(re.sub(r"\{([^{}']*)\}", r"'\1'", found[1]))
        for found in re.finditer(r"\bsource\s+([/~][^\s;\]]+)", code):
            own_program(call, found[1])
    if PERL_OPEN.search(code):
        call.ask("shell_escape", "Its code opens a command or a file to write.")
        for text in strings(code):
            if text.strip()[:1] == "|" or text.strip()[-1:] == "|":
                call.runs_text(text.strip(" |") or ":")
        call.writes(*(text.lstrip("+> ") for text in strings(code) if OPENED.match(text)))
    _look_for_paths(call, code, backticks=backticks)


def _look_for_patterns(call: Call, code: str, bare: str, *, ran: bool) -> None:
    """Check the code with the rules of code_rules.toml. `bare` is the code without literals; `ran`
    means that its commands were followed."""
    for rule, expression in code_rules():
        if rule.names and call.name not in split_words(rule.names):
            continue
        if not expression.search(code if rule.where == "code" else bare):
            continue
        match rule.does:
            case "never":
                call.never(rule.category, rule.reason)
            case "writes":
                _check_writes(call, code)
            case "deletes":
                _check_deletes(call, code)
            case "ask":
                local = rule.category == "network_out" and _all_near(code)
                if not local and not (rule.category == "shell_escape" and ran):
                    call.ask(rule.category, rule.reason)


def check_endless_starts(call: Call, code: str) -> None:
    """Check a language without functions of its own for processes: only the denying rules apply."""
    for rule, expression in code_rules():
        if rule.does == "never" and expression.search(code):
            call.never(rule.category, rule.reason)


def _look_for_paths(call: Call, code: str, *, backticks: bool) -> None:
    """Read every literal that may be a path."""
    at_home = bool(HOME.search(code))
    call.reads(*(path for path in _home_places(code) if path != "~"))
    for text in (*strings(code), *(() if backticks else TEMPLATE.findall(code))):
        if 3 < len(text) < 200 and " " not in text and ("/" in text or text[0] in "~."):
            call.reads(text)
            if at_home and text[0] != "~":
                call.reads("~/" + text.lstrip("/"))


def _probe(call: Call, code: str) -> None:
    """Probe all literals: commands may be assembled from them."""
    texts = [text for text in strings(code) if text.strip()][:40]
    for text in texts:
        call.probes(text)
    if len(texts) > 1:
        call.probes(" ".join(texts))


def _run_texts(call: Call, code: str, *, backticks: bool) -> tuple[bool, bool]:
    """Follow literal commands; return whether there were any, and whether one fetches."""
    found = [_words(call, code, match) for match in RUNS.finditer(code)]
    found += [list(strings(match[1])) for match in SENT.finditer(code)]
    if call.name == "gnuplot":
        found += [[text.lstrip("<|")] for text in strings(code) if text[:1] in ("<", "|")]
    found += [match[1].split() for match in QW.finditer(code)]
    if backticks:
        quoted = [[max(filter(None, each.groups()), key=len)] for each in BACKTICKS.finditer(code)]
        if any("#{" in text or "$" in text for each in quoted for text in each):
            _probe(call, code)
        found += quoted
    else:
        tagged = islice(TAGGED.finditer(code), MOST_PLACES)
        found += [[_fill_template(call, match[1])] for match in tagged]
    outputs = []
    for words in found:
        plain = [_unknown_parts(word) for word in words]
        if len(plain) > 1:
            outputs.append(call.runs(plain))
        # The first literal alone may be a whole script.
        outputs.append(call.runs_text(plain[0] if plain else UNKNOWN))
    joined = re.search(r"['\"]\s*[+.]\s*\w|\bENV\b|process\.env", code)
    fetches = any(each.origin == "network" for each in outputs)
    return bool(found) and not joined, fetches


def _words(call: Call, code: str, runner: re.Match[str]) -> list[str]:
    """Return the literals, and the user's home where it is joined to them."""
    words = list(strings(runner[1]))
    joined = JOINED.match(code, runner.end())
    if joined and words and HOME.search(joined["rest"]):
        home = _home_places(joined["rest"])[0].replace("~", call.paths.home, 1)
        if joined["sign"] in (",", ""):
            return [*words, home]
        words[-1] += home
    return words


def _fill_template(call: Call, template: str) -> str:
    """Return a command in backticks with its known insertions."""
    return PUT_IN.sub(lambda part: call.paths.home if HOME.search(part[1]) else UNKNOWN, template)


def _home_places(code: str) -> list[str]:
    """Return the paths in the user's home that the code names."""
    found = islice(HOME.finditer(code), MOST_PLACES)
    return ["~/" + each["path"].strip("/ ") if each["path"] else "~" for each in found]


def _unknown_parts(text: str) -> str:
    """Replace insertions by unknown parts."""
    return re.sub(r"#\{[^}]*\}|\$\{[^}]*\}|\\(.)", lambda found: found[1] or UNKNOWN, text)


def _check_writes(call: Call, code: str) -> None:
    paths = [text for text in strings(code) if _like_path(text)]
    if any(is_remote(path) for path in paths):
        call.ask("network_out", "Its code writes to another machine.")
    if not paths:
        call.ask("overwrite", "Its code writes a file whose name cannot be determined.")
    call.writes(*paths)


def _check_deletes(call: Call, code: str) -> None:
    at_home = _home_places(code)
    literals = (text for text in strings(code) if "~/" + text.strip("/ ") not in at_home)
    paths = [text for text in literals if _like_path(text) and not HOME.fullmatch(text)] + at_home
    if not paths:
        call.ask("delete", "Its code deletes something whose name cannot be determined.")
    deep = bool(
        re.search(r"rm_rf|rm_r|rmtree|remove_tree|recursive|rmSync|rmdir|delete-directory", code)
    )
    call.deletes(*paths, recursive=deep)


def _check_removals(call: Call, code: str, bare: str) -> None:
    """Check ambiguous words for deletion, which count when a path outside the project is named."""
    if not REMOVES.search(bare):
        return
    if REMOVES_HOME.search(bare):
        call.deletes(*_home_places(code), recursive=True)
    literals = [*(text for text in strings(code) if text[:1] in "/~"), *PLACE.findall(bare)]
    call.deletes(*(text for text in literals if _like_path(text)), recursive=True)


def _all_near(code: str) -> bool:
    """Whether every address in the code is local."""
    urls = [text for text in strings(code) if "://" in text]
    return (
        bool(urls)
        and UNKNOWN not in code
        and "+" not in code
        and "${" not in code
        and not any(is_remote(url) for url in urls)
    )


def _like_path(text: str) -> bool:
    return bool(text) and " " not in text and text not in ("fs", "w", "r", "a", "utf8", "utf-8")

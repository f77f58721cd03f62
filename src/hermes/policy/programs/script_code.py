"""Judges code of other languages by their functions for running, deleting, writing, sending."""

from __future__ import annotations

import re
from itertools import islice

from hermes.policy.call import Call
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import regex
from hermes.policy.programs.python_code import strings
from hermes.policy.programs.running import own_program
from hermes.policy.shell.state import UNKNOWN

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
# Functions that run a text as code.
EVALUATES = regex(
    r"(?<![.\w:])(?:load|loadstring|loadfile|dofile|source|evaluate)\b"
    r"|\b(?:eval\w*|EVAL|instance_eval|class_eval|include_string|Function|load-string|eval-string"
    r"|Code\.(?:eval|compile)\w*|vm\.run\w*)\b"
)
EVALUATED = regex(r"(?<![.\w:])(?:evaluate|eval\w*)\s*\(")
# A file whose code is run.
TAKEN_IN = regex(
    r"(?<![.\w])(?:load|dofile|loadfile|source|include(?:_once)?|require(?:_once|_relative)?|import|do)"
    r"\s*\(?\s*(['\"])((?:/|~/|\.\./)[^'\"]*)\1"
)
IMPORTS = regex(
    r"\b(?:import|from|require|Worker|importScripts|include|source|dofile)\b\s*\(?\s*(?:new\s+URL\s*\()?"
    r"\s*['\"]((https?:|npm:|jsr:|data:|blob:)[^'\"]*)['\"]"
)
# A function called by a name that is assembled from pieces.
PIECED = regex(
    r"\$(\w+)\s*=\s*['\"][^;]{0,500};.{0,2000}?\$\1\s*\("
    r"|\(\s*['\"]\w*['\"]\s*\.\s*['\"][^()]{0,200}\)\s*\(",
    re.DOTALL,
)

# Sets the name of the process.
TITLE = regex(
    r"(?<![\w$])\$0\s*=(?!=|~)|\$PROGRAM_NAME\s*=(?!=)|\b\w*set_?proc(?:ess_)?_?title\s*\(|\bprocess\.title\s*=(?!=)"
)


def usual_quotes(name: str, code: str) -> str:
    """The code with all literals in common quotes."""
    if name in LUA:
        return LONG.sub(lambda found: _quoted(found[2]), code)
    if name == "ruby":
        code = WORDS.sub(lambda found: ", ".join(map(_quoted, _inside(found).split())), code)
    if sigil := SIGILS.get(name):
        return sigil.sub(lambda found: _quoted(_inside(found)), PREFIX.sub("", code))
    return code


def _inside(found: re.Match[str]) -> str:
    return next((found[place] for place in (1, 2, 3, 4, 6) if found[place] is not None), "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "; ")
    return f'"{escaped}"'


def check_taken_in(call: Call, code: str, bare: str, *, fetches: bool) -> None:
    """Checks code that is loaded from elsewhere; `fetches`: its commands fetch something."""
    for found in TAKEN_IN.finditer(code):
        own_program(call, found[2])
    urls = (
        text for text in strings(code) if re.match(r"(?:https?|ftp)://", text) and is_remote(text)
    )
    imports = IMPORTS.search(code)
    if imports and imports[2] in ("data:", "blob:"):
        call.ask("obfuscated", "Its code runs code that is hidden in an address.")
    elif imports and (imports[2] in ("npm:", "jsr:") or is_remote(imports[1])):
        call.ask("remote_code", "Its code runs code from elsewhere.")
    elif (fetches and EVALUATES.search(bare)) or (EVALUATED.search(bare) and any(urls)):
        call.ask("remote_code", "Its code runs what it fetches from elsewhere.")
    if TITLE.search(bare):
        call.ask("obfuscated", "Its code takes another name among the processes.")
    if call.name == "php" and PIECED.search(code):
        call.ask("obfuscated", "Its code calls a function by a name that it puts together.")


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
# Code that can start programs, under any function name.
STARTS = regex(
    r"child_process|\bOpen3\b|\bIPC::|\bos\.execute\b|\bproc_open\b|System\.Process|sys\.process"
    r"|getRuntime|ProcessBuilder|\bDeno\.(run|Command)|\bBun\.(spawn|\$)|\bqw\b|\bsystem\b"
    r"|\bexec\w*\b"
)
BACKTICKS = regex(
    r"`([^`]*)`|(?:\bqq?x|%x)\s*(?:\{([^}]*)\}|\(([^)]*)\)|\[([^\]]*)\]|<([^>]*)>|([/|!#~])(.*?)\6)",
    re.DOTALL,
)
SAID: tuple[tuple[str, str, str], ...] = (
    (
        r"\b(child_process|system|exec[a-z]*|spawn\w*|popen\d?|shell_exec|passthru|proc_open"
        r"|pcntl_exec|os\.execute|io\.popen|qx|shell-command|call-process)\b\s*[^\s=:,;)\]}]",
        "shell_escape",
        "Its code runs other commands.",
    ),
    (
        r"\b(unlink\w*|rmdir\w*|rmtree|remove_tree|rm_rf|rm_r|rmSync|delete_file|deleteFile"
        r"|FileUtils\.(rm|remove)\w*|File\.delete|Dir\.(delete|rmdir)|fs\.rm|fs\.promises\.rm"
        r"|os\.remove|file_delete|delete-file|delete-directory|Deno\.remove\w*|fs::remove\w*)\b",
        "delete",
        "Its code deletes files.",
    ),
    (
        r"\b(Socket|TCPSocket|UDPSocket|TCPServer|IO::Socket|LWP|HTTP::Tiny|Net::\w+|open-uri"
        r"|fsockopen|stream_socket_client|curl_exec|curl_init|fetch|axios|XMLHttpRequest|WebSocket"
        r"|http\.request|https\.request|http\.get|https\.get|net\.connect|net\.createConnection"
        r"|dgram|socket\.(tcp|connect)|s\.tcp\(\)|\w+:connect|url-retrieve|Faraday|HTTParty|inet_pton|sockaddr_in)\b",
        "network_out",
        "Its code talks to another machine.",
    ),
    (
        r"\b(createServer|listen|TCPServer|stream_socket_server)\s*\(",
        "network_listen",
        "Its code opens a port for others.",
    ),
    (
        r"\b(eval|instance_eval|class_eval|Function|vm\.run\w*|loadstring|create_function"
        r"|base64_decode|unpack|pack|decode_base64|atob|fromCharCode|unserialize|Marshal)\b\s*[(\s]",
        "obfuscated",
        "Its code runs or hides code that is only known when it runs.",
    ),
    (
        r"\bassert\s*\(\s*(?:['\"$]|base64|str_rot)",
        "obfuscated",
        "Its code runs or hides code that is only known when it runs.",
    ),
    (
        r"\b(File\.(write|open|rename|chmod|symlink)|IO\.write|file_put_contents|fopen|fwrite"
        r"|(?:write|append|copy)File\w*|createWriteStream|fs\.(rename|chmod|copy|symlink|cp)\w*"
        r"|(?:rename|chmod|symlink|link|truncate|cp|mkdir|utimes|chown)Sync"
        r"|FileUtils\.\w+|io\.open|write-region|rename|Deno\.write\w*|Bun\.write|copy)\b\s*[(\s]",
        "overwrite",
        "",
    ),
    (
        r"\b(kill|process\.kill|Process\.kill|posix_kill)\b\s*[(\s'\"]",
        "process_kill",
        "Its code ends other processes.",
    ),
    (
        r"\bfork\s+while\b|\bfork\(?\)?\s+while\b|\bwhile\b[^}]*\bfork\b|\bloop\s*\{\s*fork",
        "power",
        "",
    ),
)
PERL_OPEN = regex(r"\bopen\b[^;]*['\"]\s*(\||[+>]?>)|\bopen\b[^;]*\|\s*['\"]")
OPENED = regex(r"\+?>{1,2}\s*[/~\w.]")
FETCHES = regex(
    r"\b(file_get_contents|fopen|readfile|simplexml_load_file|include|require|open|URI|copy|source"
    r"|dofile|import|load|url|download(?:\.file)?|slurp|get)"
    r"\s*\(?\s*['\"](https?|ftp)://"
)
MODULES = regex(
    r"['\"](?:node:)?(?:https?|http2|net|tls|dgram|socket|Net::HTTP|net/http|open-uri)['\"]\)?"
    r"[^'\"]*\.(?:request|get|connect|createConnection|createSocket|post|write|put|start)\b"
)
# The user's home in any language, and the path appended to it.
HOME = regex(
    r"(?:\bHOME\b|\bUSERPROFILE\b|home_?dir\b|\bDir\.home\b|user[._]home|HomeDirectory\b|expand_path\W+~"
    r"|expanduser\W+~)"
    r"(?:['\"\])!}();]|\?\?)*\s*(?:(?:\+|\.{1,2}|,|<>)\s*)?['\"`]?"
    r"(?P<path>/[\w.@-][\w.@/ -]*(?=['\"`\s])|(?<=['\"])[\w.][\w./-]*(?=['\"]))?"
)
# A template that runs as a command, in zx and Bun.
TAGGED = regex(r"(?<![\w'\"])(?:Bun\.)?\$(?:\.\w+|\([^()`]*\))?`([^`]*)`")
MOST_PLACES = 40
TEMPLATE = regex(r"`([^`$\n]+)`")
PUT_IN = regex(r"\$\{([^{}]*)\}")
# What follows the quoted words of a command when the home of the user is one of them.
JOINED = regex(r"\s*(?P<sign>\+|\.{1,2}|,|<>|(?=\())\s*(?P<rest>(?![\s'\"{])[^;)\]}]*)")
# The output of a command becomes code.
RUNS_OUTPUT = regex(
    r"(?:(?<![.\w])(?:load|source|parse)|\b(?:loadstring|eval|exec|dofile|Function|instance_eval))\b"
    r"\s*\(?[^\n;]{0,80}?"
    r"(?:popen|shell_exec|execSync|spawnSync|execFileSync|\bsystem\b|\bqx\b|%x|`)"
)
# Common words for deleting files, among other things.
REMOVES = regex(r"(?i)\b(?:rm|remove|delete|erase|trash|destroy)[\w/-]*!?\s*[(\s]")
REMOVES_HOME = regex(
    r"(?i)\b(?:rm|remove|delete|erase|trash|destroy)[\w/-]*!?\s*\(|\bfile\s+delete\b"
)
PLACE = regex(r"(?<=\s)(?:~|/[\w.~-]+)/[\w./~-]+")
# A function passed by name: array_map("unlink", …).
BY_NAME = regex(
    r"['\"](unlink|rmdir|system|exec|shell_exec|passthru|popen|proc_open|rename|eval|assert)['\"]\s*,"
)
INSTALLS = regex(
    r"\b(install\.packages|Pkg\.(add|develop|update)|remotes::|devtools::install|pak::|BiocManager::"
    r"|Mix\.install|luarocks|npm\s+i(nstall)?)\b"
)
SERVES = regex(r"(^|[\s;])httpd($|[\s;])")
PATTERNS = tuple((regex(pattern), category, reason) for pattern, category, reason in SAID)


def check_code(call: Call, code: str, *, backticks: bool) -> None:
    """`backticks` run a command in the language; elsewhere they only quote."""
    call.work(reason=f"It runs a piece of code with {call.name}.")
    code = usual_quotes(call.name, code)
    bare = QUOTED.sub(lambda found: found[0][0] + found[0][-1], code)
    if not backticks:
        bare = re.sub(r"`[^`]*`", "``", bare)
    ran, fetches = _run_texts(call, code, backticks=backticks)
    if STARTS.search(code):
        if not ran:
            call.ask("shell_escape", "Its code runs other commands.")
        _probe(call, code)
    _look_for_patterns(call, code, bare, ran=ran)
    check_secret_names(call, code)
    _removed(call, code, bare)
    check_taken_in(call, code, bare, fetches=fetches)
    if RUNS_OUTPUT.search(bare):
        call.ask("obfuscated", "Its code runs what another command tells it.")
    if BY_NAME.search(code):
        call.ask("obfuscated", "Its code hands over a dangerous function by its name.")
    if INSTALLS.search(code):
        call.ask("package_install", "Its code installs packages from elsewhere.")
    if call.name == "tclsh":
        for found in re.finditer(r"\bexec\s+([^\n;\]]+)", code):
            call.runs_text(re.sub(r"\{([^{}']*)\}", r"'\1'", found[1]))
        for found in re.finditer(r"\bsource\s+([/~][^\s;\]]+)", code):
            own_program(call, found[1])
    if call.name == "ruby" and SERVES.search(code):
        call.ask("network_listen", "It shows files to everybody on the network.")
    if MODULES.search(code) and not _all_near(code):
        call.ask("network_out", "Its code talks to another machine.")
    if FETCHES.search(code) and not _all_near(code):
        call.ask("network_out", "Its code talks to another machine.")
    if PERL_OPEN.search(code):
        call.ask("shell_escape", "Its code opens a command or a file to write.")
        for text in strings(code):
            if text.strip()[:1] == "|" or text.strip()[-1:] == "|":
                call.runs_text(text.strip(" |") or ":")
        call.writes(*(text.lstrip("+> ") for text in strings(code) if OPENED.match(text)))
    _look_for_paths(call, code, backticks=backticks)


def _look_for_patterns(call: Call, code: str, bare: str, *, ran: bool) -> None:
    """`bare` is the code without literals; `ran`: its commands were followed."""
    for pattern, category, reason in PATTERNS:
        if not pattern.search(bare):
            continue
        if category == "power":
            call.never("power", "it is a fork bomb")
        elif category == "overwrite":
            _written(call, code)
        elif category == "delete":
            _deleted(call, code)
        elif category == "network_out" and _all_near(code):
            continue
        elif not (category == "shell_escape" and ran):
            call.ask(category, reason)


def _look_for_paths(call: Call, code: str, *, backticks: bool) -> None:
    """Reads every literal that may be a path."""
    at_home = bool(HOME.search(code))
    call.reads(*(place for place in _home_places(code) if place != "~"))
    for text in (*strings(code), *(() if backticks else TEMPLATE.findall(code))):
        if 3 < len(text) < 200 and " " not in text and ("/" in text or text[0] in "~."):
            call.reads(text)
            if at_home and text[0] != "~":
                call.reads("~/" + text.lstrip("/"))


def _probe(call: Call, code: str) -> None:
    """Probes all literals: commands may be assembled from them."""
    texts = [text for text in strings(code) if text.strip()][:40]
    for text in texts:
        call.probes(text)
    if len(texts) > 1:
        call.probes(" ".join(texts))


def _run_texts(call: Call, code: str, *, backticks: bool) -> tuple[bool, bool]:
    """Follows literal commands; returns whether there were any, and whether one fetches."""
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
        found += [[_filled(call, match[1])] for match in tagged]
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
    """The literals, and the user's home where it is joined to them."""
    words = list(strings(runner[1]))
    joined = JOINED.match(code, runner.end())
    if joined and words and HOME.search(joined["rest"]):
        home = _home_places(joined["rest"])[0].replace("~", call.paths.home, 1)
        if joined["sign"] in (",", ""):
            return [*words, home]
        words[-1] += home
    return words


def _filled(call: Call, template: str) -> str:
    """A command in backticks with its known insertions."""
    return PUT_IN.sub(lambda part: call.paths.home if HOME.search(part[1]) else UNKNOWN, template)


def _home_places(code: str) -> list[str]:
    """The paths in the user's home that the code names."""
    found = islice(HOME.finditer(code), MOST_PLACES)
    return ["~/" + each["path"].strip("/ ") if each["path"] else "~" for each in found]


def _unknown_parts(text: str) -> str:
    """Insertions become unknown."""
    return re.sub(r"#\{[^}]*\}|\$\{[^}]*\}|\\(.)", lambda found: found[1] or UNKNOWN, text)


def _written(call: Call, code: str) -> None:
    paths = [text for text in strings(code) if _like_path(text)]
    if any(is_remote(path) for path in paths):
        call.ask("network_out", "Its code writes to another machine.")
    if not paths:
        call.ask("overwrite", "Its code writes a file whose name its text does not tell.")
    call.writes(*paths)


def _deleted(call: Call, code: str) -> None:
    at_home = _home_places(code)
    told = (text for text in strings(code) if "~/" + text.strip("/ ") not in at_home)
    paths = [text for text in told if _like_path(text) and not HOME.fullmatch(text)] + at_home
    if not paths:
        call.ask("delete", "Its code deletes something whose name its text does not tell.")
    deep = bool(
        re.search(r"rm_rf|rm_r|rmtree|remove_tree|recursive|rmSync|rmdir|delete-directory", code)
    )
    call.deletes(*paths, recursive=deep)


def _removed(call: Call, code: str, bare: str) -> None:
    """Ambiguous words for deletion count when a path outside the project is named."""
    if not REMOVES.search(bare):
        return
    if REMOVES_HOME.search(bare):
        call.deletes(*_home_places(code), recursive=True)
    told = [*(text for text in strings(code) if text[:1] in "/~"), *PLACE.findall(bare)]
    call.deletes(*(text for text in told if _like_path(text)), recursive=True)


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

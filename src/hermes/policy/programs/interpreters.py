"""Languages that run code given in a word, a file or their input."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.project_tools import OUTWARD, check_worker, is_foreign, targets_tests
from hermes.policy.programs.python_code import judge_python
from hermes.policy.programs.running import ask_if_destroying, own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.shell.state import UNKNOWN, Stream
from hermes.policy.words import word_set

CODE = frozenset(("eval", "repl"))
NEW = frozenset("add install i uninstall remove upgrade".split())
SHARED = frozenset(("publish", "deploy", "jupyter"))
RUNS = frozenset(("run", "serve", "test", "bench", "compile", "check"))


def check_deno(call: Call) -> None:
    options = call.options(call.record.values)
    verb, names = (options.operands[:1] or [""])[0], options.operands[1:]
    named = names[1:] if verb in CODE else names
    if any("://" in word or word.startswith(("npm:", "jsr:")) for word in named):
        call.ask("remote_code", "It runs code from elsewhere.")
    call.work(reason="It runs code of the project.")
    if verb in CODE:
        for code in names[:1] or options.values("--eval"):
            _code(call, code)
    elif verb in SHARED:
        call.ask("remote_state", f"`deno {verb}` hands something to others.")
    elif verb in NEW:
        if names or verb in ("upgrade", "uninstall") or options.has("-g", "--global"):
            call.ask("package_install", f"It runs `deno {verb}`.")
        call.work("network", "It installs what the lock file names.")
    elif verb == "task":
        if names and OUTWARD.match(names[0]):
            call.ask("remote_state", f"`{names[0]}` sounds as if it changes something elsewhere.")
    elif verb in RUNS or "." in verb:
        _file(call, names[:1] if verb in RUNS else [verb])


def _code(call: Call, code: str) -> None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is only known when it runs.")
    check_code(call, code, backticks=False)


def _file(call: Call, names: list[str]) -> None:
    for name in names:
        stream = call.stdin if name == "-" else call.state.files.get(call.path(name))
        if stream is not None and stream.origin == "network":
            call.ask("remote_code", "It runs what it fetches from elsewhere.")
        elif stream is not None:
            _code(call, stream.text)
        elif "://" not in name:
            own_program(call, name)


# A line that IPython runs in a shell.
SHELL_LINE = regex(r"(?m)^\s*(?:\w+\s*=\s*)?(?:!!?|%{1,2}(?:sx|system|bash|sh)\b)(.*)")


def check_python(call: Call) -> Stream | None:
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if word in ("-X", "-W", "-Q", "--check-hash-based-pycs"):
            words = words[1:]
        elif word == "-m" or (word.startswith("-m") and not word.startswith("--")):
            module = word[2:] or (words.pop(0) if words else "")
            return _module(call, module, words)
        elif word[:1] == "-" and word[:2] != "--" and "c" in word and word != "-":
            return _python_code(call, word.partition("c")[2] or (words.pop(0) if words else ""))
        elif word == "-":
            break
        elif word[:1] != "-":
            return _interpreters_file(call, word, words)
        elif word in ("-V", "--version", "-VV", "-h", "--help"):
            return None
    return _from_input(call)


def _python_code(call: Call, code: str) -> Stream | None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is only known when it runs.")
    if call.name.startswith("ipython"):
        for found in SHELL_LINE.finditer(code):
            call.runs_text(found[1])
    if not judge_python(call, code.replace(UNKNOWN, "None")):
        check_code(call, re.sub(r"\{(['\"])([^'\"]*)\1\}", r"\2", code), backticks=False)
    return None


def _module(call: Call, module: str, words: list[str]) -> Stream | None:
    name = module.partition(".")[0]
    if module in ("http.server", "SimpleHTTPServer"):
        _http_server(call, words)
    elif name in word_set("python_module_programs") and module != "unittest":
        return call.runs([name.replace("pre_commit", "pre-commit"), *words])
    elif module in ("venv", "virtualenv"):
        folders = [word for word in words if not word.startswith("-")]
        call.writes(*folders)
        call.state.own.update(call.path(folder) for folder in folders)
    elif module in word_set("python_plain_modules") or name in word_set("python_plain_modules"):
        call.work(reason=f"It runs Python's {module}.")
        call.reads(*(each for each in words if each[:1] in "/~."))
        if module in ("cProfile", "pdb", "trace", "profile", "timeit"):
            _nested_python(call, words)
    elif UNKNOWN in module:
        call.ask("unclear", "The module that it runs is only known when it runs.")
    else:
        call.work(reason=f"It runs the module {module}.")
    return None


def _nested_python(call: Call, words: list[str]) -> None:
    if call.arguments and "timeit" in call.arguments:
        for word in words:
            if not word.startswith("-"):
                judge_python(call, word)
        return
    files = [word for word in words if word.endswith(".py")]
    if files:
        own_program(call, files[0])


def _http_server(call: Call, words: list[str]) -> None:
    options = Options(words, "-b -d --bind --directory -p --protocol")
    folder = options.value("-d", "--directory")
    if options.value("-b", "--bind") in ("0.0.0.0", "::") or (folder and not call.here(folder)):
        call.ask("network_listen", "It shows files to everybody on the network.")
    elif not folder and not call.here("."):
        call.ask("network_listen", "It shows files outside the workspace.")
    else:
        call.work(reason="It serves files of the workspace.")


def _interpreters_file(call: Call, name: str, arguments: list[str]) -> Stream | None:
    """Runs a script of the project or one that this command wrote."""
    stream = call.state.files.get(call.path(name))
    if name in ("/dev/stdin", "/dev/fd/0"):
        return _from_input(call)
    if stream is not None:
        call.stdin = stream
        return _from_input(call)
    if own_program(call, name):
        call.work(reason=f"It runs the project's own {name}.")
        if name.endswith("manage.py"):
            _django(call, arguments)
        elif name.endswith("setup.py") and {"install", "develop", "upload"} & set(arguments):
            call.ask("package_install", "It installs the project outside of itself.")
        elif name.rpartition("/")[2] in ("artisan", "rails", "rake"):
            return call.runs([name.rpartition("/")[2], *arguments])
        call.reads(*(each for each in arguments if each[:1] in "/~"))
        ask_if_destroying(call, arguments)
    return None


def _django(call: Call, arguments: list[str]) -> None:
    verb = arguments[0] if arguments else ""
    text = " ".join(arguments[1:])
    if verb.startswith("shell") and re.search(r"\.(delete|update|bulk_\w+|raw|execute)\(", text):
        call.ask("database", "Its code deletes or changes data of the project's database.")
    losing = verb in ("flush", "reset_db") or (verb == "migrate" and arguments[-1:] == ["zero"])
    if verb in ("sqlflush", "dbshell") or (losing and not targets_tests(call)):
        call.ask("database", f"`{verb}` deletes or changes data of the project's database.")


def _from_input(call: Call) -> Stream | None:
    stream = call.stdin
    if stream.origin == "network":
        call.ask("remote_code", "It runs what it fetches from elsewhere.")
    elif not stream.known:
        call.ask("obfuscated", "It runs code that is only known when it runs.")
    code = stream.text.replace(UNKNOWN, "None")
    if "python" in call.name:
        return _python_code(call, code)
    check_code(call, code, backticks=call.name in ("perl", "ruby", "php"))
    return None


def check_inline(call: Call) -> Stream | None:
    """Languages with options for code: `code_options` of the record stand for the script; the
    values of `module_options` are code, too."""
    record = call.record
    options = call.options(
        f"{record.code_options} {record.values} {record.module_options}", permute=False
    )
    codes = options.values(*record.code_options.split())
    if not codes and not options.operands and options.has("-v", "--version", "-V", "-h"):
        return None
    if not options.operands and options.has("--test", "--watch"):
        call.work(reason="It runs the project's own tests.")
        return None
    for _, value in options.pairs:
        if value is not None and is_foreign(call, value):
            own_program(call, value)
    for code in [*codes, *options.values(*record.module_options.split())]:
        if UNKNOWN in code:
            call.ask("obfuscated", "It runs code that is only known when it runs.")
        check_code(call, code, backticks="backticks" in record.flags)
    if codes:
        _edited(call, options)
        return Stream(text=UNKNOWN, origin=call.stdin.origin)
    if options.operands and options.operands[0] != "-":
        return _interpreters_file(call, options.operands[0], options.operands[1:])
    return _from_input(call)


def _edited(call: Call, options: Options) -> None:
    """perl -i and ruby -i change their files."""
    in_place = any(
        word[:1] == "-" and word[:2] != "--" and "i" in word[1:] for word in call.arguments
    ) and call.name in ("perl", "ruby")
    if in_place:
        call.writes(*options.operands)
    else:
        call.reads(*options.operands)


def check_php(call: Call) -> Stream | None:
    options = call.options("-r -f -S -t -d -B -E -R", permute=False)
    for address in options.values("-S"):
        folder = options.value("-t") or "."
        if address.startswith("0.0.0.0") or not call.here(folder):
            call.ask("network_listen", "It shows files to everybody on the network.")
        call.work()
        return None
    if options.has("-l", "-v", "-m", "-i", "--version", "--ini"):
        call.reads(*options.operands)
        return None
    for code in options.values("-r", "-B", "-E", "-R"):
        if UNKNOWN in code:
            call.ask("obfuscated", "It runs code that is only known when it runs.")
        check_code(call, code, backticks=True)
        return None
    if names := [*options.values("-f"), *options.operands]:
        return _interpreters_file(call, names[0], options.operands[1:])
    return _from_input(call)


def check_compiled(call: Call) -> Stream | None:
    """Compiled languages that can also run a piece of code."""
    words = call.arguments
    options = call.options("-e --expr --eval -script", permute=False)
    codes = options.values("-e", "--expr", "--eval")
    if words[:1] == ["eval"]:
        codes = codes + options.operands[1:2]
    if call.name == "jshell" and call.stdin.text.strip() and words[:1] != ["--version"]:
        return _from_input(call)
    for code in codes:
        check_code(call, code, backticks=call.name == "crystal")
    return None if codes else check_worker(call)


def check_osascript(call: Call) -> None:
    call.ask("shell_escape", "It drives other programs of this machine.")
    for text in call.options("-e -l").values("-e"):
        check_code(call, text, backticks=False)


def check_r(call: Call) -> Stream | None:
    if call.arguments[:2] == ["CMD", "INSTALL"]:
        call.ask("package_install", "It installs a package.")
    options = call.options("-e -f --file", permute=False)
    for code in options.values("-e"):
        if "install.packages" in code or "remotes::" in code or "devtools::install" in code:
            call.ask("package_install", "It installs packages from elsewhere.")
        check_code(call, code, backticks=False)
    if options.has("--version") or options.values("-e"):
        return None
    if names := [*options.values("-f", "--file"), *options.operands]:
        return _interpreters_file(call, names[0], [])
    return _from_input(call)

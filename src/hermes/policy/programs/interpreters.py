"""Languages that run code given in a word, a file or their input."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options, split_words
from hermes.policy.patterns import regex, word_set
from hermes.policy.programs.project_tools import ask_if_open, is_foreign, targets_tests
from hermes.policy.programs.python_code import follow_python
from hermes.policy.programs.running import ask_if_destroying, own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.shell.state import UNKNOWN, Stream

LOOPBACK = regex(r"localhost$|127(?:\.\d+){3}$|\[?::1\]?$")
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
            return run_script(call, word, words)
        elif word in ("-V", "--version", "-VV", "-h", "--help"):
            return None
    return _from_input(call)


def _python_code(call: Call, code: str) -> Stream | None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is known only at run time.")
    if call.name.startswith("ipython"):
        for found in SHELL_LINE.finditer(code):
            call.runs_text(found[1])
    if not follow_python(call, code.replace(UNKNOWN, "None")):
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
        call.ask("unclear", "The module that it runs is known only at run time.")
    else:
        call.work(reason=f"It runs the module {module}.")
    return None


def _nested_python(call: Call, words: list[str]) -> None:
    if call.arguments and "timeit" in call.arguments:
        for word in words:
            if not word.startswith("-"):
                follow_python(call, word)
        return
    files = [word for word in words if word.endswith(".py")]
    if files:
        own_program(call, files[0])


def _http_server(call: Call, words: list[str]) -> None:
    options = Options(words, "-b -d --bind --directory -p --protocol")
    folder = options.value("-d", "--directory")
    # Without an address it listens on all of them.
    local = LOOPBACK.match(options.value("-b", "--bind") or "")
    if not local or (folder and not call.here(folder)):
        call.ask("network_listen", "It serves files to the whole network.")
    elif not folder and not call.here("."):
        call.ask("network_listen", "It shows files outside the workspace.")
    else:
        call.work(reason="It serves files of the workspace.")


def run_script(call: Call, name: str, arguments: list[str]) -> Stream | None:
    """Follow a script of the project, one that this command wrote, or with `-` the input."""
    stream = call.state.files.get(call.path(name))
    if stream is not None and name != "-":
        call.stdin = stream
    if stream is not None or name in ("-", "/dev/stdin", "/dev/fd/0"):
        return _from_input(call)
    if own_program(call, name):
        call.work(reason=f"It runs the project's own {name}.")
        if name.endswith("manage.py"):
            _django(call, arguments)
        elif name.endswith("setup.py") and {"install", "develop", "upload"} & set(arguments):
            call.ask("package_install", "It installs the project outside its own folder.")
        elif name.rpartition("/")[2] in ("artisan", "rails", "rake"):
            return call.runs([name.rpartition("/")[2], *arguments])
        call.reads(*(each for each in arguments if each[:1] in "/~"))
        ask_if_open(call, arguments)
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
        call.ask("remote_code", "It runs code that it downloads.")
    elif not stream.known:
        call.ask("obfuscated", "It runs code that is known only at run time.")
    code = stream.text.replace(UNKNOWN, "None")
    if "python" in call.name:
        return _python_code(call, code)
    check_code(call, code, backticks=call.name in ("perl", "ruby", "php"))
    return None


def check_inline(call: Call) -> Stream | None:
    """Check an interpreter with options for code: `code_options` of the record stand for the
    script; the values of `module_options` are code, too."""
    record = call.record
    options = call.options(
        f"{record.code_options} {record.values} {record.module_options}", permute=False
    )
    codes = options.values(*split_words(record.code_options))
    if not codes and not options.operands and options.has("-v", "--version", "-V", "-h"):
        return None
    if not options.operands and options.has("--test", "--watch"):
        call.work(reason="It runs the project's own tests.")
        return None
    for _, value in options.pairs:
        if value is not None and is_foreign(call, value):
            own_program(call, value)
    for code in [*codes, *options.values(*split_words(record.module_options))]:
        if UNKNOWN in code:
            call.ask("obfuscated", "It runs code that is known only at run time.")
        check_code(call, code, backticks="backticks" in record.flags)
    if codes:
        # perl -i and ruby -i change their files.
        letters = [word for word in call.arguments if word[:1] == "-" and word[:2] != "--"]
        in_place = call.name in ("perl", "ruby") and any("i" in word for word in letters)
        (call.writes if in_place else call.reads)(*options.operands)
        return Stream(text=UNKNOWN, origin=call.stdin.origin)
    names = [*options.values(*split_words(record.file_options)), *options.operands]
    return run_script(call, names[0] if names else "-", options.operands[1:])

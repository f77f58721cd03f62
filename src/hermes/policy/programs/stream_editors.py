"""awk and sed: small languages that can also run commands and write files."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.exposure import shown_secrets
from hermes.policy.patterns import regex
from hermes.policy.programs.python_code import strings
from hermes.policy.programs.running import own_program
from hermes.policy.shell.state import ANYTHING, UNKNOWN, Stream

# A command whose output is read: a text alone, or a variable; what is joined to it is not known.
GETLINE = regex(
    r"(?:(?:^|[;{}(!&|\n])[ \t]{0,8}(?:\"((?:[^\"\\]|\\.)*)\"|([A-Za-z_]\w*)))?"
    r"[ \t]{0,8}\)?[ \t]{0,8}\|&?[ \t]{0,8}getline"
)


def check_awk(call: Call) -> Stream | None:
    options = call.options("-F -v -f -i --field-separator --assign --file --include", permute=False)
    files = options.operands
    for name in options.values("-f", "--file"):
        own_program(call, name)
    if not options.values("-f", "--file"):
        code, files = (files[0] if files else ""), files[1:]
        # A value that is given before the code is as if it stood in it.
        given = "".join(_assigned(each) for each in options.values("-v", "--assign"))
        _awk_code(call, given + code)
    call.reads(*(each for each in files if "=" not in each))
    origin = call.stdin.origin if not files else "file"
    return Stream(text=UNKNOWN, origin=origin)


def _assigned(text: str) -> str:
    name, _, value = text.partition("=")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}";' if UNKNOWN not in value else ""


def _awk_code(call: Call, code: str) -> None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is only known when it runs.")
    shown_secrets(call, code)
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
    if "/inet/" in code:
        call.ask("network_out", "Its code talks to another machine.")


def check_sed(call: Call) -> Stream | None:
    options = call.options("-e -f -l -E --expression --file --line-length".replace("-E ", ""))
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


def _sed_script(call: Call, script: str) -> None:
    if UNKNOWN in script:
        # An unknown part may hold a command, but mostly it is a value that is put in.
        script = script.replace(UNKNOWN, "x")
    for found in re.finditer(
        r"s(?P<d>[^\w\s\\])(?:\\.|(?!(?P=d)).)*(?P=d)((?:\\.|(?!(?P=d)).)*)(?P=d)(\w*)(?:\s*(\S+))?",
        script,
    ):
        if "e" in found[3]:
            call.ask("shell_escape", "Its script runs what it has replaced.")
            call.runs_text(re.sub(r"\\(.)", r"\1", found[2]))
        if "w" in found[3] and found[4]:
            call.writes(found[4])
    bare = re.sub(r"([sy])([^\w\s\\])(?:\\.|(?!\2).)*\2(?:\\.|(?!\2).)*\2[gpiIm0-9]*", "", script)
    bare = re.sub(r"(^|[;{,!\n]\s*)/(?:[^/\\]|\\.)*/", r"\1", bare)
    for found in re.finditer(r"(?:^|[;{\n\d$,!])\s*([we])(?:\s+([^\n;}]+)|\s*$)", bare):
        if found[1] == "w" and found[2]:
            call.writes(found[2])
        elif found[1] == "e":
            call.ask("shell_escape", "Its script runs a command.")
            call.runs_text(found[2] or UNKNOWN)

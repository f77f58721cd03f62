"""Commands of Windows and PowerShell."""

from __future__ import annotations

import base64
import binascii
import re

from hermes.policy.call import Call
from hermes.policy.patterns import load_regex, regex, word_set
from hermes.policy.programs.records import record_of
from hermes.policy.programs.running import own_program
from hermes.policy.shell.state import Stream

DRIVE = load_regex("windows_drive")
# A path below the current folder.
HERE = regex(r"(?:\.?\\)?(?!\.\.)[\w.-]+(?:[\\/](?!\.\.)[\w.-]+)*")
NEVER: tuple[tuple[str, str, str], ...] = (
    (r"(?i)\bformat(\.com)?\s+[a-z]:", "disk", "it formats a drive"),
    (r"(?i)\b(format-volume|clear-disk|initialize-disk)\b", "disk", "it formats a disk"),
    (r"(?i)\bdiskpart\b.*\bclean\b", "disk", "it wipes a disk"),
    (r"(?i)\b(stop-computer|restart-computer)\b", "power", "it turns the machine off"),
    (r"(?i)\bcipher(\.exe)?\s+/w:", "disk", "it wipes a drive"),
)
READING_CMDLET = load_regex("reading_cmdlet")
READING_ALIAS = load_regex("reading_cmdlet_alias")
WRITTEN = regex(r"[>`]|\$\(|\.Invoke|\biex\b|::|&|\bcmd\b", re.IGNORECASE)


def only_shows(text: str) -> bool:
    """Whether every part of a line of PowerShell only reads."""
    parts = [part.split() for part in re.split(r"[|;\n]", text)]
    words = [part[0] for part in parts if part]
    reads = all(READING_CMDLET.match(word) or READING_ALIAS.match(word) for word in words)
    return bool(words) and reads and not WRITTEN.search(text)


def check_text(call: Call, text: str) -> None:
    """Check a line of another shell as text."""
    for pattern, category, reason in NEVER:
        if re.search(pattern, text):
            call.never(category, reason)
    for line in re.split(r"[;&|\n{}()]+", text):
        words = line.split()
        if words:
            _words(call, [word.strip("\"'") for word in words])


def _words(call: Call, words: list[str]) -> None:
    name = words[0].lower().removesuffix(".exe")
    name = "invoke-expression" if name == "iex" else name
    if name in word_set("windows_deletes"):
        _deletes(call, words)
    elif (record := record_of(name)).check == "windows.windows" and record.category:
        call.ask(record.category, record.reason)
    elif name in ("powershell", "pwsh", "cmd"):
        _shell_words(call, words[1:])


def _deletes(call: Call, words: list[str]) -> None:
    flags = " ".join(words[1:]).lower()
    deep = "/s" in flags.split() or "-r" in flags or words[0].lower() == "deltree"
    if deep and any(DRIVE.match(word) for word in words[1:]):
        call.never("delete", "it deletes a whole drive")
    named = [word.strip(",") for word in words[1:] if word[:1] not in "-/"]
    if named and all(HERE.fullmatch(word) for word in named):
        call.deletes(*(word.replace("\\", "/") for word in named), recursive=deep)
    else:
        call.ask("delete", f"It deletes {' '.join(words[1:]) or 'files'}.")


def _shell_words(call: Call, words: list[str]) -> None:
    rest = list(words)
    while rest:
        word = rest.pop(0).lower()
        if re.fullmatch(r"[-/]e(nc?|c|ncodedcommand)?", word) and rest:
            call.ask("obfuscated", "It runs an encoded command.")
            check_text(call, _decode(rest[0]))
            return
        if re.fullmatch(r"[-/](c|k|command|f|file)", word):
            break
    check_text(call, " ".join(rest))


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text + "===").decode("utf-16-le", "replace")
    except (binascii.Error, ValueError):
        return ""


def check_shell(call: Call) -> Stream | None:
    words = list(call.arguments)
    while words and re.fullmatch(r"(?i)-(noprofile|nop|noninteractive|nologo|noni)", words[0]):
        words.pop(0)
    if words[:1] and re.fullmatch(r"(?i)-c(ommand)?", words[0]) and only_shows(" ".join(words[1:])):
        check_text(call, " ".join(words[1:]))
        call.work(reason="It only looks.")
        return None
    if len(words) > 1 and re.fullmatch(r"(?i)-f(ile)?", words[0]) and "powershell" not in call.name:
        if own_program(call, words[1].replace("\\", "/")):
            call.work(reason=f"It runs the project's own {words[1]}.")
        return None
    if call.name.startswith("cmd") and words[:1] and words[0].lower() == "/c":
        check_text(call, " ".join(words[1:]))
        return call.runs_text(" ".join(words[1:]))
    call.ask("unclear", f"`{call.name}` runs commands that are not followed here.")
    _shell_words(call, call.arguments)
    return None


def check_windows(call: Call) -> None:
    words = [call.name, *call.arguments]
    check_text(call, " ".join(words))
    _words(call, words)

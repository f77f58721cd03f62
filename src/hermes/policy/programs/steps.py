"""Applies the steps of a record: conditions on a call, their consequences, and the output of the
program."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Callable
from functools import partial

from hermes.policy.call import Call, Options, split_words
from hermes.policy.exposure import check_secret_names
from hermes.policy.path_effects import DISK
from hermes.policy.programs.project_tools import OUTWARD, ask_if_foreign_folder, targets_tests
from hermes.policy.programs.records import Step
from hermes.policy.programs.running import is_fetched, own_program
from hermes.policy.programs.subcommands import only_looks, only_reads
from hermes.policy.shell.state import ANYTHING, ENDLESS_FILES, NOTHING, SOME, UNKNOWN, Stream

_SLICE = re.compile(r"(-?\d*)(:?)(-?\d*)")
_OPTION = re.compile(r"-\D")
_FILE_EFFECTS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("reads", Call.reads),
    ("reads_all", Call.reads_all),
    ("writes", Call.writes),
    ("deletes", partial(Call.deletes, recursive=True)),
    ("removes", Call.deletes),
    ("touches", Call.touches),
)


def apply_steps(call: Call) -> tuple[bool, Stream | None]:
    """Apply the steps of the record; return whether one of them ends the check, and the output."""
    record = call.record
    options = call.options(record.values, permute=not record.command)
    inner: Stream | None = None
    for step in record.steps:
        word = _holds(step, call, options)
        if word is None:
            continue
        inner = _apply(step, call, options, word) or inner
        if step.stop or step.output:
            return True, make_output(step.output or record.output, call, options.operands, inner)
    return False, make_output(record.output, call, options.operands, inner)


def _holds(step: Step, call: Call, options: Options) -> str | None:
    """Return the word that fits, if all conditions hold; None otherwise."""
    words, arguments = options.operands, call.arguments
    if (
        (step.names and call.name not in split_words(step.names))
        or (step.options and not options.has(*split_words(step.options)))
        or (step.without and options.has(*split_words(step.without)))
        or (step.verbs and not _has_verb(step.verbs, words))
        or (step.any and split_words(step.any).isdisjoint(arguments))
        or (step.none and not split_words(step.none).isdisjoint(arguments))
        or len(words) < step.least
        or (step.below and len(words) >= step.below)
        or (step.operands and not (words and all(re.fullmatch(step.operands, w) for w in words)))
        or (step.text and not re.search(step.text, " ".join(arguments)))
        or (step.input and not (call.stdin.known and re.search(step.input, call.stdin.text)))
        or (step.origin and call.stdin.origin not in split_words(step.origin))
        or (step.disk and not any(DISK.match(call.path(word)) for word in words))
        or (step.looks is not None and only_reads(call, ordered=True) != step.looks)
        or (step.tests is not None and targets_tests(call) != step.tests)
        or (step.reading and not only_looks(select(step.reading, call, options)))
    ):
        return None
    if step.here:
        names = select(step.here, call, options)
        if not (names and all(map(call.here, names))):
            return None
    if step.outside and all(map(call.here, select(step.outside, call, options))):
        return None
    if step.unknown and not any(
        (UNKNOWN in word or SOME in word) and not is_plain(call, word)
        for word in select(step.unknown, call, options)
    ):
        return None
    return _fitting(step, call, options)


def _fitting(step: Step, call: Call, options: Options) -> str | None:
    word = ""
    for selector, pattern in (("*", step.word), (":", step.operand), (step.of, step.fits)):
        if pattern:
            found = (w for w in select(selector, call, options) if re.fullmatch(pattern, w))
            if (word := next(found, "")) == "":
                return None
    if step.outward:
        word = next(filter(OUTWARD.match, select(step.outward, call, options)), "")
        return word or None
    return word


def _has_verb(verbs: str, words: list[str]) -> bool:
    known = split_words(verbs)
    return bool(words) and (
        words[0] in known or ":".join(words[:2]) in known or ":".join(words[:3]) in known
    )


def is_plain(call: Call, word: str) -> bool:
    """Whether the unknown part of an address is a harmless environment variable. As a label of a
    host name it would be sent to whoever answers for the domain."""
    label = "://" not in word and re.search(rf"[{UNKNOWN}{SOME}][^/]*\.", word)
    return word in call.state.plain and "?" not in word and "=" not in word and not label


def _apply(step: Step, call: Call, options: Options, word: str) -> Stream | None:
    """Return the output of what the step runs, if anything."""

    def choose(selectors: str) -> list[str]:
        found = select(selectors, call, options) if selectors else []
        return [each for each in found if not re.match(step.skip, each)] if step.skip else found

    scripts = choose(step.runs)
    if step.found:
        texts = choose(step.among or "*")
        found = [each for text in texts for each in re.finditer(step.found, text)]
        if not found:
            return None
        scripts += [next(filter(None, each.groups()), "") for each in found]
    for field, act in _FILE_EFFECTS:
        if selectors := getattr(step, field):
            act(call, *choose(selectors))
    for name in choose(step.creates):
        new = call.here(name) and not call.paths.exists(call.path(name), unknown=True)
        (call.touches if new else call.writes)(name)
    for name in choose(step.fetched):
        call.state.files[call.path(name)] = FETCHED
    reason = step.reason.replace("{name}", call.name).replace("{word}", word)
    if step.ask:
        call.ask(step.ask, reason)
    if step.never:
        call.never(step.never, reason)
    if step.deny:
        call.deny(step.deny, reason)
    if step.work is not None:
        call.work(step.work, reason)
    if step.builds:
        ask_if_foreign_folder(call)
    for name in choose(step.uses):
        own_program(call, name)
    if folders := choose(step.into):
        archives = map(call.path, choose(step.unpacks))
        fetched = call.stdin.origin == "network" or any(is_fetched(call, each) for each in archives)
        call.writes(*folders, content=FETCHED if fetched else None)
    if step.secrets:
        check_secret_names(call, " ".join(choose(step.secrets)))
    _follow_code(step, call, options)
    inner = None
    for script in scripts:
        inner = call.runs_text(script)
    if command := choose(step.runs_words):
        inner = call.runs(command)
    return inner


def _follow_code(step: Step, call: Call, options: Options) -> None:
    # Few records have code, and its scanners are large.
    if step.code:
        from hermes.policy.programs.script_code import check_code

        for code in select(step.code, call, options):
            if UNKNOWN in code:
                call.ask("obfuscated", "It runs code that is known only at run time.")
            check_code(call, code, backticks="backticks" in call.record.flags)
    if step.scripts:
        from hermes.policy.programs.interpreters import run_script

        for name in select(step.scripts, call, options):
            run_script(call, name, options.operands[1:])
    if step.statements:
        from hermes.policy.programs.databases import check_sql

        for text in select(step.statements, call, options):
            check_sql(call, text, own=False)


def select(selectors: str, call: Call, options: Options) -> list[str]:
    """Return the words of a call that the selectors name; README.md has a table of selectors."""
    found: list[str] = []
    for each in selectors.split():
        selector, _, default = each.rstrip("+/").partition("|")
        words = _select_one(selector, call, options) or ([default] if default else [])
        if each.endswith("/"):
            words = [word.partition("?")[0].rpartition("/")[2] for word in words]
        found += [" ".join(words)] if each.endswith("+") and words else words
    return found


def _select_one(selector: str, call: Call, options: Options) -> list[str]:
    if _OPTION.match(selector):
        return options.values(selector)
    if selector[0] == "=":
        return [selector[1:]]
    if selector[0] == ">":
        words = call.arguments
        return words[words.index(selector[1:]) + 1 :] if selector[1:] in words else []
    match selector:
        case "*":
            return call.arguments
        case ".":
            return ["."]
        case "lines":
            return call.stdin.text.replace(UNKNOWN, "").split("\n")
        case "stdin":
            return [call.stdin.text] if call.stdin.known and call.stdin.text else []
        case "input":
            return [text] if (text := call.stdin.text.replace(UNKNOWN, "")) else []
    found = _SLICE.fullmatch(selector)
    assert found, selector
    start, colon, end = found.groups()
    first = int(start) if start else None
    last = (int(end) if end else None) if colon else (first or 0) + 1 or None
    return options.operands[first:last]


FETCHED = Stream(origin="network")
_FIXED = {
    "": None,
    "nothing": NOTHING,
    "anything": ANYTHING,
    "some": Stream(text=SOME),
    "everything": Stream(text="**"),
    "file": Stream(origin="file"),
    "environment": Stream(origin="environment"),
    "endless": Stream(origin="endless"),
    "network": FETCHED,
}
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": lambda text: base64.b64decode(text + b"==="),
    "base32": base64.b32decode,
    "hex": binascii.unhexlify,
}


def make_output(kind: str, call: Call, words: list[str], inner: Stream | None) -> Stream | None:
    """Return what a program prints. `words` are the operands, `inner` is the output of the command
    that the program runs."""
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _DECODERS:
        return decode_stream(content_of(call, words), kind)
    if (encoding := kind.removesuffix("-input")) in _DECODERS:
        return decode_stream(call.stdin, encoding)
    match kind:
        case "inner":
            return inner
        case "same":
            return Stream(text=UNKNOWN, origin=call.stdin.origin)
        case "folder":
            return Stream(text=call.state.cwd)
        case "root":
            return Stream(text=call.paths.root)
        case "operands":
            return Stream(text="\n".join(words))
        case "entries":
            return Stream(text="\n".join(posixpath.join(word, "*") for word in words) or "*")
        case "paths":
            return Stream(text="\n".join(map(call.path, words)))
        case "dirname":
            text = posixpath.dirname(words[0]) or "." if words else UNKNOWN
            return Stream(text=UNKNOWN if UNKNOWN in text else text)
        case "basename":
            text = posixpath.basename(words[0].rstrip("/")) if words else UNKNOWN
            return Stream(text=text.removesuffix(words[1]) if len(words) > 1 else text)
    found = content_of(call, words)
    if kind == "lines":
        # The first lines of endless input have an end, if it has lines.
        kind = "part" if found.origin == "zeros" else "first"
    return _from_files(kind, found)


def _from_files(kind: str, found: Stream) -> Stream:
    match kind:
        case "content":
            return found
        case "part":
            return Stream(text=part_of(found.text), origin=found.origin)
        case "first":
            origin = "" if found.endless else found.origin
            return Stream(text=part_of(found.text), origin=origin)
        case "reversed" if found.known:
            text = "\n".join(line[::-1] for line in found.text.split("\n"))
            return Stream(text=text, origin=found.origin or "decoded")
    return Stream(text=UNKNOWN, origin=found.origin)


def part_of(text: str) -> str:
    # Some of all entries is an unknown entry.
    return re.sub(r"(?m)(^|/)\*\*?$", rf"\1{SOME}", text)


def content_of(call: Call, words: list[str]) -> Stream:
    """Return the content of the files among the words, or the input when there are none."""
    names = [each for each in words if not each.lstrip("+").isdigit()]
    if not names:
        return call.stdin
    call.reads(*names)
    streams = [_content(call, name) for name in names]
    origin = next((each.origin for each in streams if each.origin), "")
    return Stream(text="".join(each.text for each in streams), origin=origin)


def _content(call: Call, name: str) -> Stream:
    if name == "-":
        return call.stdin
    if name in ENDLESS_FILES:
        return ENDLESS_FILES[name]
    return call.state.files.get(call.path(name), Stream(origin="file"))


def decode_stream(stream: Stream, encoding: str) -> Stream:
    if not stream.known:
        return Stream(text=UNKNOWN, origin=stream.origin)
    try:
        plain = _DECODERS[encoding]("".join(stream.text.split()).encode())
    except (binascii.Error, ValueError):
        return Stream(text=UNKNOWN, origin=stream.origin)
    return Stream(text=plain.decode("utf-8", "replace"), origin=stream.origin or "decoded")

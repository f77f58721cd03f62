"""Programs that read or transform text. Their output is computed where possible."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase

from hermes.policy.call import Call, Options
from hermes.policy.exposure import SECRET_PATTERN
from hermes.policy.path_effects import home_stores
from hermes.policy.programs.steps import content_of, part_of
from hermes.policy.shell.state import SOME, UNKNOWN, Stream

FD_VALUES = """-e -t -E -d -S -c -j -g --type --extension --exclude --max-depth --size --color
    --threads --base-directory --search-path --changed-within --changed-before --owner"""


def check_grep(call: Call) -> Stream:
    options = call.options(call.record.values)
    if options.has("--pre", "--hostname-bin"):
        call.ask("shell_escape", "It runs a program on each file that it searches.")
    patterned = options.values("-e", "-f", "--regexp", "--file")
    if call.stdin.origin == "environment" and SECRET_PATTERN.search(" ".join(call.arguments)):
        call.ask("credentials", "It searches the environment for secrets.")
    names = options.operands[0 if patterned else 1 :]
    call.reads(*options.values("-f", "--file"))
    if options.has("-r", "-R", "--recursive") or call.name in ("rg", "ag", "ack"):
        call.reads_all(*names)
    if options.has("-l", "--files-with-matches", "--files", "-L") or "--files" in call.arguments:
        call.reads(*names)
        return Stream(text="\n".join(f"{each}/{SOME}" for each in names or ["."]))
    found = content_of(call, names)
    if not names and SOME in found.text:
        return Stream(text=_matching_paths(call, found.text, options.operands), origin=found.origin)
    return Stream(text=part_of(found.text) if not names else UNKNOWN, origin=found.origin)


def _matching_paths(call: Call, paths: str, patterns: list[str]) -> str:
    """Return an unknown part of the paths, and the credential stores that the pattern may match."""
    bases = {line.rpartition("/")[0] for line in paths.split("\n") if line.endswith(f"/{SOME}")}
    plain = [re.sub(r"[\^$\\]", "", each) for each in patterns[:1]]
    stores = [each for base in sorted(bases) for each in find_stores(call, base, plain)]
    return "\n".join((part_of(paths), *stores))


def check_fd(call: Call) -> Stream | None:
    options = call.options(f"{FD_VALUES} -x -X --exec --exec-batch")
    for marker in ("-x", "--exec", "-X", "--exec-batch"):
        if marker in call.arguments:
            words = call.arguments[call.arguments.index(marker) + 1 :]
            before = Options(call.arguments[: call.arguments.index(marker)], FD_VALUES)
            for target in _fd_targets(call, before):
                inner = [re.sub(r"\{(//?|\.|/\.)?\}", target, each) for each in words]
                call.runs(inner if inner != words else [*inner, target])
            return None
    return Stream(text="\n".join(_fd_targets(call, options)))


def _fd_targets(call: Call, options: Options) -> list[str]:
    pattern = (options.operands[:1] or [""])[0]
    narrow = pattern not in ("", ".", ".*") or options.pairs
    # A pattern matches part of a name, but stores are known by whole names.
    plain = re.sub(r"[\^$\\]", "", pattern)
    bases = [*options.operands[1:], *options.values("--base-directory", "--search-path")] or ["."]
    stores = [each for base in bases for each in find_stores(call, base, [plain])]
    return [f"{base}/{SOME if narrow else '**'}" for base in bases] + stores


def check_tr(call: Call) -> Stream:
    options = call.options()
    sets = [_characters(each) for each in options.operands]
    text, origin = call.stdin.text, call.stdin.origin
    if not call.stdin.known or not sets or options.has("-c", "-C", "--complement"):
        return Stream(text=text if SOME in text else UNKNOWN, origin=origin)
    if options.has("-d", "--delete"):
        return Stream(text="".join(sign for sign in text if sign not in sets[0]), origin=origin)
    if len(sets) < 2 or not sets[1]:
        return Stream(text=text, origin=origin)
    second = sets[1] + sets[1][-1] * max(0, len(sets[0]) - len(sets[1]))
    table = dict(zip(sets[0], second, strict=False))
    made = "".join(table.get(sign, sign) for sign in text)
    # Changing case or blanks hides nothing.
    hidden = made.split() != text.split() and made.lower() != text.lower()
    letters = sum(old.isalpha() and new.isalpha() for old, new in table.items())
    return Stream(text=made, origin=origin or ("decoded" if hidden and letters > 3 else ""))


def _characters(text: str) -> str:
    text = text.replace("[:lower:]", "a-z").replace("[:upper:]", "A-Z").replace("[:digit:]", "0-9")
    out = ""
    for found in re.finditer(r"(.)-(.)|(.)", text.replace("\\n", "\n"), re.DOTALL):
        if found[1]:
            out += "".join(chr(code) for code in range(ord(found[1]), ord(found[2]) + 1))
        else:
            out += found[3]
    return out


def check_tee(call: Call) -> Stream:
    options = call.options()
    call.writes(*options.operands, append=options.has("-a", "--append"), content=call.stdin)
    return call.stdin


def check_mktemp(call: Call) -> Stream:
    call.work(reason="It creates a temporary file.")
    options = call.options("-p --tmpdir --suffix")
    names = options.operands
    folder = options.value("-p", "--tmpdir") or ("" if names and "/" in names[0] else "/tmp")
    if names and "/" in names[0]:
        folder = posixpath.dirname(names[0])
    call.writes(posixpath.join(folder, SOME))
    return Stream(text=posixpath.join(folder, SOME))


def find_stores(call: Call, base: str, names: list[str]) -> list[str]:
    """Return credential stores that a search below `base` for these names may find."""
    found = []
    parts = dict.fromkeys(part for name in names for part in name.split("/"))
    for last in filter(lambda part: part.strip("*?."), parts):
        places = [posixpath.join(base, last)]
        if call.paths.covers_credentials(call.path(base)):
            stores = (
                f"{head}/{'/'.join(rest)}".rstrip("/")
                for head in home_stores()
                for rest in home_stores()[head]
            )
            places += [
                f"~/{each}" for each in stores if fnmatchcase(each.rpartition("/")[2], last.lower())
            ]
        found += [each for each in places if call.paths.why_sensitive(call.path(each))]
    return found

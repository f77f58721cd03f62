"""Programs that read or transform text. Their output is computed where possible."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from hermes.policy.call import Call, Options
from hermes.policy.exposure import SECRET_PATTERN
from hermes.policy.path_effects import KEY_FILE, home_stores
from hermes.policy.patterns import regex
from hermes.policy.shell.state import ANYTHING, SOME, UNKNOWN, Stream

# Name patterns of keys and passwords.
KEY_PATTERN = regex(
    r"(?i)^\*?\.(pem|key|env|kdbx|ovpn|p12|pfx|jks|keystore|ppk|asc|gpg|htpasswd|netrc|pgpass)\*?$"
    r"|^\.env\*?|^\*?id_\w*\*?$|secret|passw|credential|wallet\.dat|\.aws|shadow"
)
FD_VALUES = """-e -t -E -d -S -c -j -g --type --extension --exclude --max-depth --size --color
    --threads --base-directory --search-path --changed-within --changed-before --owner"""


def _part(text: str) -> str:
    # Some of all entries is an unknown entry.
    return re.sub(r"(?m)(^|/)\*\*?$", rf"\1{SOME}", text)


def _files(call: Call, names: list[str]) -> Stream:
    """The content of these files, or the input when there are none."""
    if not names:
        return call.stdin
    call.reads(*names)
    streams = [_content(call, name) for name in names]
    origin = next((each.origin for each in streams if each.origin), "")
    return Stream(text="".join(each.text for each in streams), origin=origin)


def _content(call: Call, name: str) -> Stream:
    if name == "-":
        return call.stdin
    if name in ("/dev/zero", "/dev/urandom", "/dev/random"):
        return Stream(origin="endless")
    return call.state.files.get(call.path(name), Stream(origin="file"))


def check_cat(call: Call) -> Stream:
    return _files(call, call.options().operands)


def _names(call: Call) -> list[str]:
    """Words that may be files, including values of options."""
    return [
        each
        for each in call.arguments
        if (each == "-" or each[:1] != "-") and not each.lstrip("+").isdigit()
    ]


def check_lines(call: Call) -> Stream:
    """head, tail and others print some lines of their files or input."""
    found = _files(call, _names(call))
    cut = call.name == "head" and found.origin == "endless"
    endless = "endless" in (found.origin, call.stdin.origin)
    if endless and any(re.search(r"\d(G|T|GB|TB|GiB)$|\d{11}", word) for word in call.arguments):
        call.ask("disk", "It makes more than a disk may hold.")
    return Stream(text=_part(found.text), origin="" if cut else found.origin)


def check_turned(call: Call) -> Stream:
    """The output is not computed."""
    return Stream(text=UNKNOWN, origin=_files(call, _names(call)).origin)


def check_grep(call: Call) -> Stream:
    options = call.options(call.record.values)
    if options.has("--pre", "--hostname-bin"):
        call.ask("shell_escape", "It runs a program on each file that it searches.")
    patterned = options.values("-e", "-f", "--regexp", "--file")
    if call.stdin.origin == "environment" and SECRET_PATTERN.search(" ".join(call.arguments)):
        call.ask("credentials", "It looks for secrets among the variables of the environment.")
    names = options.operands[0 if patterned else 1 :]
    call.reads(*options.values("-f", "--file"))
    if options.has("-r", "-R", "--recursive") or call.name in ("rg", "ag", "ack"):
        call.reads_all(*names)
    if options.has("-l", "--files-with-matches", "--files", "-L") or "--files" in call.arguments:
        call.reads(*names)
        return Stream(text="\n".join(f"{each}/{SOME}" for each in names or ["."]))
    found = _files(call, names)
    if not names and SOME in found.text:
        return Stream(text=_chosen(call, found.text, options.operands), origin=found.origin)
    return Stream(text=_part(found.text) if not names else UNKNOWN, origin=found.origin)


def _chosen(call: Call, paths: str, patterns: list[str]) -> str:
    """The paths that match; those that the pattern names may be credential stores."""
    bases = {line.rpartition("/")[0] for line in paths.split("\n") if line.endswith(f"/{SOME}")}
    plain = [re.sub(r"[\^$\\]", "", each) for each in patterns[:1]]
    stores = [each for base in sorted(bases) for each in find_stores(call, base, plain)]
    return "\n".join((_part(paths), *stores))


def check_ls(call: Call) -> Stream:
    options = call.options(call.record.values)
    names = options.operands
    if any(sign in name for name in names for sign in "*?["):
        return Stream(text="\n".join(names))
    return Stream(text="\n".join(posixpath.join(name, "*") for name in names) or "*")


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
    bases = _fd_bases(options)
    stores = [each for base in bases for each in find_stores(call, base, [plain])]
    return [f"{base}/{SOME if narrow else '**'}" for base in bases] + stores


def _fd_bases(before: Options) -> list[str]:
    return [*before.operands[1:], *before.values("--base-directory", "--search-path")] or ["."]


def check_base64(call: Call) -> Stream:
    options = call.options("-w -i -b --wrap --break")
    found = _files(call, options.operands)
    if not options.has("-d", "-D", "--decode"):
        return Stream(text=UNKNOWN, origin=found.origin)
    return decode_stream(found, lambda text: base64.b64decode(text + b"==="))


def decode_stream(stream: Stream, decode: Callable[[bytes], bytes]) -> Stream:
    if not stream.known:
        return Stream(text=UNKNOWN, origin=stream.origin)
    try:
        plain = decode("".join(stream.text.split()).encode())
    except (binascii.Error, ValueError):
        return Stream(text=UNKNOWN, origin=stream.origin)
    return Stream(text=plain.decode("utf-8", "replace"), origin=stream.origin or "decoded")


def check_base32(call: Call) -> Stream:
    options = call.options("-w --wrap")
    found = _files(call, options.operands)
    if options.has("-d", "--decode"):
        return decode_stream(found, base64.b32decode)
    return Stream(text=UNKNOWN, origin=found.origin)


def check_xxd(call: Call) -> Stream:
    options = call.options("-c -g -l -o -s -n")
    names = options.operands
    call.writes(*names[1:2])
    found = _files(call, names[:1])
    flags = "".join(word for word in call.arguments if word.startswith("-"))
    if "r" in flags:
        return decode_stream(found, lambda text: binascii.unhexlify(text))
    return Stream(text=UNKNOWN, origin=found.origin)


def check_rev(call: Call) -> Stream:
    found = _files(call, call.options().operands)
    if not found.known:
        return Stream(text=UNKNOWN, origin=found.origin)
    text = "\n".join(line[::-1] for line in found.text.split("\n"))
    return Stream(text=text, origin=found.origin or "decoded")


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
    return Stream(text=made, origin=origin or ("decoded" if hidden and _swaps(table) else ""))


def _swaps(table: dict[str, str]) -> bool:
    """Whether letters are replaced by other letters."""
    return sum(old.isalpha() and new.isalpha() for old, new in table.items()) > 3


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
    call.writes(*options.operands, append=options.has("-a", "--append"))
    for name in options.operands:
        call.state.files[call.path(name)] = call.stdin
    return call.stdin


def check_unpacked(call: Call) -> Stream:
    """gunzip and the like: in place, or to the output."""
    options = call.options("-S -T -b -p -o --suffix")
    names = options.operands
    call.reads(*names)
    to_output = options.has("-c", "--stdout", "--to-stdout", "-p") or call.name.endswith("cat")
    if names and not (to_output or options.has("-l", "-t", "--list", "--test")):
        call.writes(*names)
    origin = call.stdin.origin if not names else "file"
    return Stream(text=UNKNOWN, origin=origin)


def check_yes(call: Call) -> Stream:
    return Stream(origin="endless")


def check_pwd(call: Call) -> Stream:
    return Stream(text=call.state.cwd)


def check_which(call: Call) -> Stream:
    return Stream(text="\n".join(call.options().operands))


def check_basename(call: Call) -> Stream:
    names = call.options("-s --suffix").operands
    if not names:
        return ANYTHING
    text = posixpath.basename(names[0].rstrip("/"))
    return Stream(text=text.removesuffix(names[1]) if len(names) > 1 else text)


def check_dirname(call: Call) -> Stream:
    names = call.options().operands
    text = posixpath.dirname(names[0]) or "." if names else UNKNOWN
    return Stream(text=UNKNOWN if UNKNOWN in text else text)


def check_realpath(call: Call) -> Stream:
    names = call.options(call.record.values).operands
    return Stream(text="\n".join(call.path(each) for each in names))


def check_mktemp(call: Call) -> Stream:
    call.work(reason="It makes a temporary file.")
    options = call.options("-p --tmpdir --suffix")
    names = options.operands
    folder = options.value("-p", "--tmpdir") or ("" if names and "/" in names[0] else "/tmp")
    if names and "/" in names[0]:
        folder = posixpath.dirname(names[0])
    call.writes(posixpath.join(folder, SOME))
    return Stream(text=posixpath.join(folder, SOME))


def check_sort(call: Call) -> Stream:
    options = call.options(call.record.values)
    call.writes(*options.values("-o", "--output"))
    if programs := options.values("--compress-program"):
        call.ask("shell_escape", f"It runs `{programs[0]}`.")
    found = _files(call, options.operands)
    return Stream(text=_part(found.text), origin=found.origin)


def check_uniq(call: Call) -> Stream:
    names = call.options("-f -s -w").operands
    call.writes(*names[1:2])
    return _files(call, names[:1])


def find_stores(call: Call, base: str, names: list[str]) -> list[str]:
    """Credential stores that a search below `base` for these names may find."""
    found = []
    for last in {part for name in names for part in name.split("/") if part.strip("*?.")}:
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


def looks_like_key(name: str) -> bool:
    """Whether a search for this name is a search for keys."""
    return bool(KEY_FILE.search(name) or KEY_PATTERN.search(name))

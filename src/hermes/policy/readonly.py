"""Commands that are known to change nothing, by name and by options."""

from __future__ import annotations

from collections.abc import Callable

# Any options, any arguments.
PLAIN = frozenset(
    """
    [ arch b2sum base32 base64 basename cal cat cksum cmp column comm cut df diff dirname du
    echo egrep expand expr false fgrep file fmt fold free getconf grep groups head hexdump id
    join jq last ls lsb_release lsblk lscpu lsmem md5sum nl nproc numfmt od paste pgrep
    printenv printf ps pwd readlink realpath rev seq sha1sum sha224sum sha256sum sha384sum
    sha512sum sleep stat strings sum tac tail test tr true tsort tty type uname unexpand
    uptime users vmstat w wc whereis which who whoami
    """.split()
)
VERSIONED = frozenset(
    """
    bash cargo cc clang cmake docker g++ gcc gh git go java javac make mypy node npm npx perl
    php pip pip3 pnpm podman pytest python python3 rg ruby ruff rustc sqlite3 uv yarn
    """.split()
)
GIT_ANY = frozenset(
    """
    blame cat-file check-ignore count-objects describe diff diff-tree for-each-ref grep log
    ls-files ls-tree merge-base name-rev rev-list rev-parse shortlog show show-ref status var
    verify-commit whatchanged
    """.split()
)
FIND_ACTS = frozenset("-delete -exec -execdir -ok -okdir -fprint -fprintf -fprint0 -fls".split())
Check = Callable[[tuple[str, ...]], bool]


def is_read_only(words: tuple[str, ...]) -> bool:
    """True only when name and options together are known to change nothing."""
    name, arguments = words[0], words[1:]
    if name in PLAIN:
        return True
    if name in VERSIONED and arguments in (("--version",), ("-V",), ("version",), ("-version",)):
        return True
    check = CHECKED.get(name)
    return check is not None and check(arguments)


def _no_option(*forbidden: str) -> Check:
    """None of these options, also in the forms --name=value, --na and -xo."""

    def check(arguments: tuple[str, ...]) -> bool:
        return not any(_is_option(each, option) for each in arguments for option in forbidden)

    return check


def _is_option(argument: str, option: str) -> bool:
    if option.startswith("--"):
        name = argument.partition("=")[0]
        return len(name) > 2 and option.startswith(name)
    return argument[:1] == "-" and argument[:2] != "--" and option[1] in argument[1:]


def _find(arguments: tuple[str, ...]) -> bool:
    return not any(argument in FIND_ACTS for argument in arguments)


def _at_most(count: int, check: Check) -> Check:
    """No more than so many arguments that are not options: one more would be an output file."""

    def whole(arguments: tuple[str, ...]) -> bool:
        names = [each for each in arguments if not each.startswith("-")]
        return len(names) <= count and check(arguments)

    return whole


def _sed(arguments: tuple[str, ...]) -> bool:
    """Only `sed -n 'A,Bp' files…`: anything else may write or run."""
    if len(arguments) < 2 or arguments[0] != "-n":
        return False
    script = arguments[1]
    body = script[:-1].replace(",", "").replace("$", "")
    no_more_options = not any(each.startswith("-") for each in arguments[2:])
    return script.endswith("p") and (body.isdigit() or not body) and no_more_options


def _date(arguments: tuple[str, ...]) -> bool:
    simple = ("-u", "--utc", "-R", "-I", "--iso-8601")
    return all(
        each.startswith("+") or each in simple or each.startswith("-I") for each in arguments
    )


def _git(arguments: tuple[str, ...]) -> bool:
    rest = list(arguments)
    while rest and rest[0] in ("--no-pager", "-C"):
        del rest[: 2 if rest[0] == "-C" else 1]
    if not rest:
        return False
    verb, options = rest[0], tuple(rest[1:])
    if not _no_option(*GIT_ACTS)(options):
        return False
    if verb in GIT_ANY:
        return True
    listing = GIT_LISTS.get(verb)
    return listing is not None and listing(options)


GIT_ACTS = ("--output", "--ext-diff", "--textconv", "--open-files-in-pager", "-O")
GIT_LISTS: dict[str, Check] = {
    "branch": lambda o: all(
        e in ("-a", "-r", "-v", "-vv", "--list", "--all", "--show-current") for e in o
    ),
    "remote": lambda o: o in ((), ("-v",), ("--verbose",)),
    "tag": lambda o: o in ((), ("-l",), ("--list",)),
    "stash": lambda o: o[:1] in (("list",), ("show",)),
    "config": lambda o: o[:1] in (("--get",), ("-l",), ("--list",), ("--get-all",)),
    "reflog": lambda o: o[:1] in ((), ("show",)),
    "worktree": lambda o: o[:1] == ("list",),
    "submodule": lambda o: o[:1] == ("status",),
}
CHECKED: dict[str, Check] = {
    "find": _find,
    "sort": _no_option("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "tree": _no_option("-o"),
    "rg": _no_option("--pre", "--hostname-bin"),
    "uniq": _at_most(1, _no_option()),
    "xxd": _at_most(1, _no_option("-r")),
    "hostname": lambda arguments: not arguments or arguments in (("-f",), ("-s",), ("-I",)),
    "env": lambda arguments: not arguments,
    "date": _date,
    "sed": _sed,
    "git": _git,
    "command": lambda arguments: arguments[:1] in (("-v",), ("-V",)),
    "pip": lambda arguments: arguments[:1] in (("list",), ("show",), ("freeze",)),
}

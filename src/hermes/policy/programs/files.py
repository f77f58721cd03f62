"""Programs that create, change, move, delete, pack and unpack files."""

from __future__ import annotations

import posixpath
import re

from hermes.policy.call import Call, Options
from hermes.policy.exposure import looks_like_key
from hermes.policy.patterns import regex, word_list, word_set
from hermes.policy.programs.filters import find_stores
from hermes.policy.programs.running import is_fetched
from hermes.policy.programs.steps import FETCHED
from hermes.policy.shell.state import NOTHING, SOME, UNKNOWN, Stream

PACKERS = regex(r"^(exec=)?(gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzma|lzop|brotli)( -[\w-]+)*$")


def check_tar(call: Call) -> Stream | None:
    words = list(call.arguments)
    if words and words[0][:1] not in ("-", "") and re.fullmatch(r"[A-Za-z]+", words[0]):
        words = _old_style(words)
    options = Options(words, call.record.values)
    for program in options.values(*word_list("tar_run_options")):
        if not PACKERS.match(program) and not program.startswith(
            ("dot", "echo", "sleep", "ttyout")
        ):
            call.ask("shell_escape", "It makes tar run another program.")
            call.runs_text(program.removeprefix("exec="))
    folder = options.value("-C", "--directory")
    archive = options.value("-f", "--file") or "-"
    if options.has("-x", "--extract", "--get"):
        return _extract(call, options, folder or ".", archive)
    if options.has("-t", "--list", "-d", "--diff"):
        call.reads(archive)
        return None
    call.reads_all(*options.operands, *options.values("-T", "--files-from"))
    if folder:
        call.reads_all(folder)
    if "--remove-files" in words:
        names = [posixpath.join(folder or "", each) for each in options.operands]
        call.deletes(*names, recursive=True)
    if archive != "-":
        call.writes(archive)
        return NOTHING
    return Stream(text=UNKNOWN, origin="file")


def _old_style(words: list[str]) -> list[str]:
    """Rewrite old-style arguments like `tar xzf a -C b`: the letters first, then the values in
    their order."""
    letters, rest = words[0], words[1:]
    out: list[str] = []
    for letter in letters:
        if letter in "fCTXIbKNVHg" and rest:
            out += [f"-{letter}", rest.pop(0)]
        else:
            out.append(f"-{letter}")
    return out + rest


def _extract(call: Call, options: Options, folder: str, archive: str) -> Stream | None:
    if archive != "-":
        call.reads(archive)
    if options.has("-O", "--to-stdout"):
        return Stream(text=UNKNOWN, origin=call.stdin.origin)
    if options.has("-P", "--absolute-names"):
        call.ask("overwrite", "It may write wherever the archive specifies.")
    fetched = call.stdin.origin == "network" or is_fetched(call, call.path(archive))
    call.writes(folder, content=FETCHED if fetched else None)
    return NOTHING


FIND_FILES = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))
FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
ENDLESS = frozenset(("if=/dev/zero", "if=/dev/urandom", "if=/dev/random", "if=/dev/full"))
FIND_ACTS = FIND_RUNS | {"-delete", "-print", "-print0"}
OPEN_MODE = regex(r"^0*[0-7]{0,3}[2367]$")
SPECIAL_MODE = regex(r"^0*[2467][0-7]{3}$")


def check_rm(call: Call) -> Stream:
    # The most common program that deletes; steps would take longer.
    options = call.options()
    recursive = options.has("-r", "-R", "--recursive")
    if recursive and options.has("--no-preserve-root"):
        call.never("delete", "it deletes the whole system")
    unknown = any(word[:1] == UNKNOWN for word in call.arguments)
    call.deletes(*options.operands, recursive=recursive or unknown)
    return NOTHING


def _destination(call: Call) -> tuple[list[str], str, bool]:
    """Return sources, target, and whether folders are copied recursively."""
    options = call.options(call.record.values)
    names = options.operands
    whole = options.has("-r", "-R", "-a", "--recursive", "--archive")
    target = options.value("-t", "--target-directory")
    if target is not None:
        return names, target, whole
    return (names[:-1], names[-1], whole) if len(names) > 1 else (names, "", whole)


def _created_paths(sources: list[str], target: str) -> list[str]:
    """Return the files that copying creates."""
    folder = target.endswith("/") or len(sources) != 1
    if not folder:
        return [target]
    return [posixpath.join(target, posixpath.basename(each.rstrip("/"))) for each in sources]


def check_cp(call: Call) -> Stream:
    sources, target, whole = _destination(call)
    (call.reads_all if whole else call.reads)(*sources)
    if not target:
        return NOTHING
    if _fresh_env(call, sources, target):
        call.work(reason="It creates a settings file from its example.")
        return NOTHING
    created = _created_paths(sources, target)
    call.writes(target)
    call.writes(*created, content=call.state.files.get(call.path(sources[0])) if sources else None)
    if sources and all(call.here(each) for each in sources):
        call.state.own.update(map(call.path, created))
    return NOTHING


def _fresh_env(call: Call, sources: list[str], target: str) -> bool:
    """Whether a new `.env` is made from the project's example."""
    template = len(sources) == 1 and re.search(r"(example|sample|template|dist)$", sources[0])
    return bool(
        template
        and call.here(target)
        and posixpath.basename(target).startswith(".env")
        and not call.paths.exists(call.path(target), unknown=True)
    )


def check_mv(call: Call) -> Stream:
    sources, target, _ = _destination(call)
    call.touches(*sources)
    if target == "/dev/null":
        call.ask("delete", "It moves files to a place where they are lost.")
    for source in sources:
        path = call.path(source)
        if call.paths.is_root(path) or target == "/dev/null":
            call.deletes(source, recursive=True)
        elif not call.here(source) and call.paths.place(path) != "scratch":
            call.deletes(source)
        elif posixpath.relpath(path, call.paths.root) in (".", ".git"):
            call.deletes(source, recursive=True)
        call.reads(source)
        moved = call.state.files.get(path)
        if moved is not None and target:
            call.state.files[call.path(target)] = moved
    if target:
        call.writes(target, *_created_paths(sources, target))
    return NOTHING


def check_ln(call: Call) -> Stream:
    options = call.options(call.record.values)
    names = options.operands
    if not names:
        return NOTHING
    link = names[-1] if len(names) > 1 else posixpath.basename(names[0])
    sources = names[:-1] or names
    if (folder := options.value("-t", "--target-directory")) is not None:
        link = posixpath.join(folder, posixpath.basename(names[0]))
        sources = names
    call.writes(link)
    if options.has("-s", "--symbolic"):
        base = posixpath.dirname(call.path(link))
        sources = [
            call.path(each if each[:1] == "~" else posixpath.join(base, each)) for each in sources
        ]
        call.state.links[call.path(link)] = sources[0]
    # Programs that read the link read its target.
    call.reads_all(*sources)
    return NOTHING


def check_mkdir(call: Call) -> Stream:
    names = call.options(call.record.values).operands
    call.state.own.update(call.path(each) for each in names)
    caches = f"{call.paths.home}/.cache/"
    call.writes(*(each for each in names if not call.path(each).startswith(caches)))
    return NOTHING


def check_dd(call: Call) -> Stream:
    stream = call.stdin
    written = False
    for word in call.arguments:
        key, _, value = word.partition("=")
        if key == "if":
            if re.match(r"/dev/(sd|nvme|hd|vd|mmcblk|disk|mapper)", value):
                call.ask("disk", f"It reads the raw disk {value}.")
            call.reads(value)
            stream = call.state.files.get(call.path(value), Stream(origin="file"))
        elif key == "of":
            endless = any(each in ENDLESS for each in call.arguments)
            if endless and not any(each.startswith("count=") for each in call.arguments):
                call.ask("disk", "It writes until the disk is full.")
            call.writes(value, content=stream)
            written = True
    return NOTHING if written else stream


RESTRICTING_MODE = regex(r"0?[4567]00|(go|g|o)-[rwx]+|(go|g,o|o)=|u=rwX?,go=")


def check_chmod(call: Call) -> Stream:
    # A mode such as -x or -w looks like an option.
    words = [each for each in call.arguments if not re.fullmatch(r"-[Rcfv]+|--\w[\w-]*", each)]
    flags = [each for each in call.arguments if re.fullmatch(r"-[Rcfv]+|--\w[\w-]*", each)]
    recursive = any("R" in each or "--recursive".startswith(each) for each in flags if each != "--")
    mode, names = (words[0], words[1:]) if words else ("", [])
    if any(each.startswith("--reference") for each in call.arguments):
        names, mode = words, ""
    whole = [each for each in names if recursive or each.endswith("/**")]
    if any(call.paths.is_root(call.path(each)) for each in whole):
        call.never("permissions", "it changes the rights of the whole system")
    if re.search(r"[ugoa]*[+=][rwxX]*[st]", mode) or SPECIAL_MODE.match(mode):
        call.ask("privilege", f"Mode {mode} lets others run it with its owner's privileges.")
    if OPEN_MODE.match(mode) or re.search(r"(^|,)[ugoa]*[oa][ugoa]*[+=][rxX]*w", mode):
        call.ask("permissions", f"Mode {mode} lets everyone write.")
    if RESTRICTING_MODE.fullmatch(mode) and not recursive:
        # Fewer users may read it afterwards.
        call.touches(*names)
        names = [each for each in names if not call.here(each)]
    call.writes(*names, append=True)
    return NOTHING


def check_chown(call: Call) -> Stream:
    options = call.options("--reference --from")
    names = options.operands[1:]
    if options.has("-R", "--recursive") and any(
        call.paths.is_root(call.path(each)) for each in names
    ):
        call.never("permissions", "it gives the whole system to another owner")
    call.touches(*names)
    mine = {"", UNKNOWN, SOME, call.paths.home.rpartition("/")[2]}
    owner = set(re.split(r"[:.]", (options.operands or [""])[0]))
    if call.name == "chown" and owner <= mine - {"root"} and all(map(call.here, names)):
        call.work(reason="It changes the owner of workspace files.")
        return NOTHING
    call.ask("permissions", f"It changes the owner of {', '.join(names) or 'files'}.")
    return NOTHING


def check_find(call: Call) -> Stream | None:
    words = call.arguments
    while words and words[0] in ("-L", "-P", "-H", "-E"):
        words = words[1:]
    at = next((i for i, each in enumerate(words) if each[:1] in ("-", "(", "!")), len(words))
    bases, terms = words[:at] or ["."], words[at:]
    acts = [index for index, each in enumerate(terms) if each in FIND_ACTS] or [len(terms)]
    filtered = all(_is_filtered(_terms_of_action(terms, index)) for index in acts)
    if UNKNOWN in "".join(bases):
        filtered = False
    targets = [_target_below(base, terms, filtered) for base in bases]
    targets += [each for base in bases for each in find_stores(call, base, _searched_names(terms))]
    _find_names(call, bases, terms)
    for index, term in enumerate(terms):
        if term == "-delete":
            call.deletes(*(targets if filtered else bases), recursive=not filtered)
        elif term in FIND_FILES and index + 1 < len(terms):
            call.writes(terms[index + 1])
        elif term in FIND_RUNS:
            words = terms[index + 1 :]
            end = next((i for i, each in enumerate(words) if each in (";", "+")), len(words))
            for target in targets:
                call.runs([each.replace("{}", target) for each in words[:end]])
    return Stream(text="\n".join(targets))


def _searched_names(terms: list[str]) -> list[str]:
    """Return the names that find searches for."""
    return [
        terms[index + 1].rstrip("/")
        for index, term in enumerate(terms[:-1])
        if term in ("-name", "-iname", "-path", "-ipath", "-wholename")
        and (index == 0 or terms[index - 1] not in ("!", "-not"))
    ]


def _terms_of_action(terms: list[str], action: int) -> list[str]:
    """Return the terms that select files for the action: those since the last `or`."""
    before = [i for i, each in enumerate(terms[:action]) if each in ("-o", "-or", ",")]
    return terms[before[-1] + 1 : action] if before else terms


def _is_filtered(terms: list[str]) -> bool:
    return any(
        term in word_set("find_filters")
        and terms[index + 1 : index + 2] not in (["*"], ["*.*"], [".*"])
        for index, term in enumerate(terms)
        if index == 0 or terms[index - 1] not in ("!", "-not")
    )


def _target_below(base: str, terms: list[str], filtered: bool) -> str:
    if "-maxdepth" in terms and terms[terms.index("-maxdepth") + 1 :][:1] == ["0"]:
        return base
    if filtered:
        return posixpath.join(base, SOME)
    return posixpath.join(base, "**")


def _find_names(call: Call, bases: list[str], terms: list[str]) -> None:
    hunted = [
        terms[index + 1]
        for index, term in enumerate(terms[:-1])
        if term in ("-name", "-iname", "-path")
        and looks_like_key(terms[index + 1].rpartition("/")[2])
    ]
    if "-perm" in terms and any("4000" in each or "u+s" in each for each in terms):
        call.ask("privilege", "It searches for programs that run with higher privileges.")
    if hunted and not all(call.here(base) for base in bases):
        call.ask("credentials", f"It searches for keys ({hunted[0]}) outside the workspace.")

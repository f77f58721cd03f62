"""Archivers, patch, man and pagers: where their files go, and which programs they run."""

from __future__ import annotations

import posixpath
import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.running import is_fetched
from hermes.policy.redirections import PLAIN_VIEWERS
from hermes.policy.shell.state import NOTHING, UNKNOWN, Stream

TAR_TAKING = """
    -f -C -T -X -I -F -b -K -N -V -H -g --file --directory --files-from --exclude-from --exclude
    --use-compress-program --to-command --checkpoint-action --rsh-command --rmt-command
    --info-script --new-volume-script --transform --strip-components --owner --group --mode
    --format --index-file
"""
RUNS = (
    "--to-command",
    "--checkpoint-action",
    "--use-compress-program",
    "-I",
    "--rsh-command",
    "--rmt-command",
    "--info-script",
    "--new-volume-script",
    "-F",
)
PACKERS = regex(r"^(exec=)?(gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzma|lzop|brotli)( -[\w-]+)*$")


def check_tar(call: Call) -> Stream | None:
    words = list(call.arguments)
    if words and words[0][:1] not in ("-", "") and re.fullmatch(r"[A-Za-z]+", words[0]):
        words = _old_style(words)
    options = Options(words, TAR_TAKING)
    for program in options.values(*RUNS):
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
    """`tar xzf a -C b`: the letters first, then the values in their order."""
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
        call.ask("overwrite", "It may write anywhere the archive says.")
    call.writes(folder)
    if call.stdin.origin == "network" or is_fetched(call, call.path(archive)):
        call.state.files[call.path(folder)] = Stream(origin="network")
    return NOTHING


def check_unzip(call: Call) -> Stream | None:
    options = call.options("-d -x -P -O")
    call.reads(*options.operands[:1])
    if options.has("-K", "-:"):
        call.ask("privilege", "It keeps marks that give others rights, or leaves its folder.")
    if options.has("-l", "-t", "-v", "-Z"):
        return None
    if options.has("-p", "-c"):
        return Stream(text=UNKNOWN, origin="file")
    folder = options.value("-d") or "."
    call.writes(folder)
    if options.operands and is_fetched(call, call.path(options.operands[0])):
        call.state.files[call.path(folder)] = Stream(origin="network")
    return NOTHING


def check_cpio(call: Call) -> Stream | None:
    if any(word.startswith("--rsh") for word in call.arguments):
        call.ask("shell_escape", "It uses another program for its connections.")
    options = call.options("-F -D -O -I -R -M -C --file --directory")
    folder = options.value("-D", "--directory") or "."
    if options.has("-i", "--extract", "-p", "--pass-through"):
        call.writes(folder, *options.operands)
    call.writes(*options.values("-O"))
    return None


def check_patch(call: Call) -> Stream | None:
    options = call.options("-p -d -i -o -r -B -D -F -V -Y -z --input --directory --output")
    call.work(reason="It changes files of the workspace.")
    call.reads(*options.values("-i", "--input"))
    call.writes(
        options.value("-d", "--directory") or ".",
        *options.operands[:1],
        *options.values("-o", "--output"),
    )
    return None


def check_man(call: Call) -> Stream | None:
    options = call.options("-P -H -M -S -s -m -C -L -p -r --pager --html --config-file")
    for program in options.values("-P", "--pager", "-H", "--html"):
        viewer, _, told = program.partition(" ")
        if viewer not in PLAIN_VIEWERS or not re.fullmatch(r"(?:-[\w-]+ ?)*", told):
            call.ask("shell_escape", "It makes man run another program.")
            call.runs_text(program)
    return None


def check_pager(call: Call) -> Stream | None:
    for word in call.arguments:
        if word.startswith("+") and "!" in word:
            call.ask("shell_escape", "It makes a pager run a command.")
            call.runs_text(word.partition("!")[2])
    call.reads(*(word for word in call.arguments if word[:1] not in "-+"))
    return Stream(text=UNKNOWN, origin="file")

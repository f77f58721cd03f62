"""Programs that run another command: what is inside counts."""

from __future__ import annotations

import re
import shlex

from hermes.policy.call import Call, Check, shown
from hermes.policy.programs.running import check_title, run_stream
from hermes.policy.shell.state import ANYTHING, NOTHING, UNKNOWN, Stream
from hermes.policy.surroundings import check_variable

# name: (options that take a value, words before the command that are not part of it)
PLAIN: dict[str, tuple[str, int]] = {
    "nohup": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p -t --class --classdata", 0),
    "timeout": ("-k -s --kill-after --signal", 1),
    "gtimeout": ("-k -s --kill-after --signal", 1),
    "time": ("-f -o --format --output", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "setsid": ("", 0),
    "chronic": ("", 0),
    "unbuffer": ("", 0),
    "catchsegv": ("", 0),
    "caffeinate": ("-t -w", 0),
    "xvfb-run": ("-e -f -n -p -s -w", 0),
    "dbus-run-session": ("--config-file --dbus-daemon", 0),
    "faketime": ("-f", 1),
    "taskset": ("", 1),
    "numactl": ("-N -m -C -i -p", 0),
    "chrt": ("-T -P -D", 1),
    "prlimit": ("--pid", 0),
    "cpulimit": ("-l -p -e", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "noglob": ("", 0),
    "nocorrect": ("", 0),
    "entr": ("", 0),
    "watchexec": (
        "-e -w -i -f -d -s --exts --watch --ignore --filter --debounce --signal --shell",
        0,
    ),
    "reflex": ("-r -R -g -G -d", 0),
    "strace": ("-e -o -p -s -a -u -E -P -I -O -S -X", 0),
    "ltrace": ("-e -o -p -s -a -u -n -l -x", 0),
    "valgrind": ("", 0),
    "bear": ("--output", 0),
    "ccache": ("", 0),
    "sccache": ("", 0),
    "distcc": ("", 0),
    "retry": ("-t -d", 0),
    "rlwrap": ("", 0),
    "winpty": ("", 0),
    "setarch": ("", 1),
    "linux32": ("", 0),
    "linux64": ("", 0),
    "fakeroot": ("-l -s -i", 0),
    "eatmydata": ("", 0),
    "proxychains": ("-f", 0),
    "torsocks": ("", 0),
    "firejail": ("", 0),
    "dotenv": ("-f -e", 0),
    "direnv": ("", 2),
    "foreman": ("", 1),
    "with-contenv": ("", 0),
    "pseudo": ("", 0),
}
# The same, and they give the command more rights or take it out of its bounds.
RIGHTS: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -p -C -D -h -R -T -U -r -t --user --group --prompt --chdir --host", 0),
    "doas": ("-u -C -a", 0),
    "pkexec": ("--user", 0),
    "gksudo": ("-u", 0),
    "runuser": ("-u -g -G --user --group", 0),
    "setpriv": ("--reuid --regid --groups --inh-caps --ambient-caps --bounding-set", 0),
    "capsh": ("", 0),
    "unshare": ("-S -G -R --map-users --map-groups --root --wd", 0),
    "nsenter": ("-t -S -G --target --setuid --setgid", 0),
    "chroot": ("--userspec --groups", 1),
    "machinectl": ("-M --uid", 2),
    "bwrap": ("", 0),
    "sg": ("", 1),
    "newgrp": ("", 1),
    "run0": ("-u --user", 0),
}


# Commands that may stand behind options which take more words than one.
GIVEN = frozenset("sh bash rm dd mkfs shutdown reboot".split())


def _inner(call: Call, taking: str, skipped: int) -> list[str]:
    words = call.options(taking, permute=False).operands
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        name, _, value = words[0].partition("=")
        check_variable(call.follower, name, (value,), call.state)
        words = words[1:]
    return words[skipped:]


def _plain(call: Call) -> Stream | None:
    taking, skipped = PLAIN[call.name]
    inner = _inner(call, taking, skipped)
    if call.name in ("strace", "ltrace") and "-p" in call.arguments:
        call.ask("process_kill", "It watches what another process reads and writes.")
    if call.name in ("strace", "ltrace", "time"):
        for name in call.options(taking, permute=False).values("-o", "--output"):
            if name[:1] in ("|", "!"):
                call.ask("shell_escape", "It gives what it finds out to another program.")
                call.runs_text(name[1:])
            call.writes(name)
    return _given(call, inner)


def _given(call: Call, words: list[str]) -> Stream | None:
    """Words with blanks in them, alone behind the options, are a script for a shell."""
    if len(words) == 1 and " " in words[0].strip():
        return call.runs_text(words[0])
    return call.runs(words) if words else None


def _rights(call: Call) -> Stream | None:
    if call.arguments in (["-V"], ["-K"], ["-k"]):
        return None
    taking, skipped = RIGHTS[call.name]
    options = call.options(taking, permute=False)
    kind = "container" if call.name in ("nsenter", "unshare", "chroot", "bwrap") else "privilege"
    call.ask(kind, f"`{call.name}` runs it with other rights or outside its bounds.")
    inner = _inner(call, taking, skipped)
    if text := options.value("-c", "--command"):
        return call.runs_text(text)
    if inner and inner[0] == "--":
        inner = inner[1:]
    for place, word in enumerate(call.arguments[1:20], 1):
        if word in GIVEN:
            call.probes(shown(call.arguments[place:]))
    if call.name == "sudo":
        _enter(call, options.value("-D", "--chdir"))
        if not inner and options.has("-s", "-i", "--shell", "--login"):
            return run_stream(call, call.stdin)
    return call.runs(inner) if inner else None


def _enter(call: Call, folder: str | None) -> None:
    """The command inside works in another folder."""
    if folder is not None:
        call.state = call.state.copy()
        call.state.cwd = call.path(folder)


def _su(call: Call) -> Stream | None:
    options = call.options("-c -s -g -G -w --command --shell --group --session-command")
    call.ask("privilege", "`su` runs it as somebody else.")
    for text in options.values("-c", "--command", "--session-command"):
        call.runs_text(text)
    return None


def _env(call: Call) -> Stream | None:
    words = list(call.arguments)
    title: str | None = None
    while words:
        word = words[0]
        if word in ("-u", "-C", "--unset", "--chdir") and len(words) > 1:
            _enter(call, words[1] if word in ("-C", "--chdir") else None)
            del words[:2]
        elif word.startswith(("--chdir=", "-C")):
            _enter(call, word.removeprefix("--chdir=").removeprefix("-C"))
            del words[0]
        elif word in ("-a", "--argv0") and len(words) > 1:
            title = words[1]
            del words[:2]
        elif word.startswith("--argv0="):
            title = words.pop(0).partition("=")[2]
        elif word in ("-S", "--split-string") or word.startswith(("-S", "--split-string=")):
            text = word.removeprefix("--split-string=").removeprefix("-S")
            rest = words[1:] if text and text != "--split-string" else words[2:]
            text = text if text and text != "--split-string" else (words[1:2] or [""])[0]
            words = [*_words(text), *rest]
        elif word[:1] == "-":
            del words[0]
        elif "=" in word:
            name, _, value = word.partition("=")
            check_variable(call.follower, name, (value,), call.state)
            call.state = call.state.copy()
            call.state.set(name, (value,))
            del words[0]
        else:
            if title is not None:
                check_title(call, title, words)
            return call.runs(words)
    return Stream(origin="environment")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _xargs(call: Call) -> Stream | None:
    options = call.options(
        "-a -E -I -J -L -n -P -s -d --arg-file --delimiter --replace --max-args --max-procs "
        "--max-lines --max-chars --process-slot-var",
        permute=False,
    )
    stdin = call.stdin
    for name in options.values("-a", "--arg-file"):
        call.reads(name)
        stdin = call.state.files.get(call.path(name), ANYTHING)
    command = options.operands or ["echo"]
    marker = options.value("-I", "-J", "--replace") or ("{}" if options.has("-i", "-I") else "")
    nulls = options.has("-0", "--null") or options.value("-d", "--delimiter") is not None
    values = _arguments(stdin, lines=bool(marker), nulls=nulls)
    if marker:
        for value in values:
            call.runs([each.replace(marker, value) for each in command], NOTHING)
        return ANYTHING
    return call.runs([*command, *values], NOTHING)


def _arguments(stdin: Stream, *, lines: bool, nulls: bool = False) -> list[str]:
    if stdin.text.strip() == UNKNOWN:
        return [UNKNOWN]
    if nulls:
        # What find prints stands in lines here.
        found = re.split(r"[\0\n]", stdin.text)
    else:
        found = stdin.text.split("\n") if lines else stdin.text.replace("\0", " ").split()
    found = [each.strip("'\"") for each in found if each.strip()]
    return [*found[:20], UNKNOWN] if len(found) > 20 else found


def _parallel(call: Call) -> Stream | None:
    words = call.options(
        "-j -a -N -n -S --jobs --delay --timeout --arg-file", permute=False
    ).operands
    at = next((i for i, each in enumerate(words) if re.fullmatch(r":{3,4}\+?", each)), len(words))
    command, given = words[:at], [each for each in words[at:] if not each.startswith(":::")]
    values = (
        given
        if at < len(words) and words[at].startswith(":::")
        else _arguments(call.stdin, lines=True)
    )
    if at < len(words) and words[at].startswith("::::"):
        values = [UNKNOWN]
    if not command:
        for value in values:
            call.runs_text(value)
        return None
    marked = any("{" in each for each in command)
    for value in values[:20] or [UNKNOWN]:
        filled = [_filled(each, value) for each in command]
        text = " ".join(filled if marked else [*filled, value])
        if UNKNOWN in text:
            call.runs(text.split())
        else:
            call.runs_text(text)
    return None


def _filled(word: str, value: str) -> str:
    return re.sub(r"\{[^{}]*\}", lambda _: value, word)


def _watch(call: Call) -> Stream | None:
    options = call.options("-n -q -s --interval --equexit --shotsdir", permute=False)
    words = options.operands
    # Without -x the words become one text, in which quotes around a script are gone.
    quoted = len(words) > 1 and any(" " in word for word in words)
    out = call.runs(words) if words and (quoted or options.has("-x", "--exec")) else None
    if words and not options.has("-x", "--exec"):
        return call.runs_text(" ".join(words))
    return out


def check_cargo_watch(call: Call) -> Stream | None:
    """Behind `--` and -s stands a command, behind -x one of cargo."""
    options = call.options("-x -s -w -i -d -C --exec --shell --watch --ignore --delay --workdir")
    for text in options.values("-s", "--shell"):
        call.runs_text(text)
    for text in options.values("-x", "--exec"):
        call.runs_text(f"cargo {text}")
    words = options.operands[options.operands[:1] == ["watch"] :]
    call.work(reason="It works again when files change.")
    return _given(call, words)


def _flock(call: Call) -> Stream | None:
    options = call.options("-w -E -c --timeout --command", permute=False)
    words = options.operands[1:]
    if words[:1] == ["-c"] or options.value("-c", "--command"):
        return call.runs_text(options.value("-c", "--command") or " ".join(words[1:]))
    return call.runs(words) if words else None


def _script(call: Call) -> Stream | None:
    options = call.options("-c -T -t -o -E -O -B -I -m --command --timing --log-out")
    call.writes(*options.operands[:1])
    texts = options.values("-c", "--command")
    for text in texts:
        call.runs_text(text)
    if not texts and not options.has("--version", "-V", "--help", "-h"):
        call.ask("unclear", "It starts a shell that waits for commands.")
    return None


def _systemd_run(call: Call) -> Stream | None:
    call.ask("persistence", "The system runs it later or by itself.")
    inner = _inner(
        call, "-p -u -M -H --unit --uid --gid --on-calendar --on-active --property --slice", 0
    )
    return call.runs(inner) if inner else None


WRAPPERS: dict[str, Check] = {
    **dict.fromkeys(PLAIN, _plain),
    **dict.fromkeys(RIGHTS, _rights),
    "su": _su,
    "env": _env,
    "genv": _env,
    "xargs": _xargs,
    "gxargs": _xargs,
    **dict.fromkeys(("parallel", "rush"), _parallel),
    "watch": _watch,
    "cargo-watch": check_cargo_watch,
    "flock": _flock,
    "script": _script,
    "systemd-run": _systemd_run,
}

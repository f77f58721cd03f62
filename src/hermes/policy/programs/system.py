"""Programs that change the machine: disks, services, processes, users, the kernel."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.findings import READS_ONLY
from hermes.policy.path_effects import DISK
from hermes.policy.patterns import regex
from hermes.policy.programs.running import own_program
from hermes.policy.programs.subcommands import names_only, only_reads
from hermes.policy.shell.state import ANYTHING, UNKNOWN, Stream

# Categories whose programs may be asked for information.
TELLING = frozenset(
    ("system_config", "disk", "privilege", "persistence", "permissions", "package_install")
) | {"container", "process_kill"}
WIPES = regex(r"--zero-superblock|\b(eraseDisk|eraseVolume|zeroDisk|secureErase|labelclear)\b")
TURNS_OFF = regex(r"\b(PowerOff|Reboot|Halt|KExec|Hibernate|Shutdown)\b")


def check_disk_tool(call: Call) -> None:
    """Partition tools: listing is allowed, everything else destroys data."""
    options = call.options()
    reading = options.has("-l", "--list", "-p", "--print", "--version", "--help", "-V", "-v")
    if reading or "print" in call.arguments:
        return
    device = any(DISK.match(call.path(word)) for word in options.operands)
    given = call.stdin.known and bool(call.stdin.text.strip())
    typed = given and (call.name == "sfdisk" or "w" in call.stdin.text.split())
    if device and (len(call.arguments) > 1 or typed):
        call.never("disk", "it changes the partitions of a disk")
    call.ask("disk", "It changes the partitions of a disk.")


def check_ssh_keygen(call: Call) -> None:
    options = call.options(call.record.values)
    call.reads(*options.values("-f"))
    names = options.values("-f")
    if names and options.has("-t") and options.has("-N") and all(map(call.here, names)):
        # A new key; ssh-keygen asks before it overwrites one.
        call.writes(*names)
    elif not options.has("-l", "-F", "-B"):
        call.ask("credentials", "It makes, shows or changes a key.")


def check_asked(call: Call) -> None:
    """Asks as the record says, unless the call only reads."""
    record, text = call.record, " ".join(call.arguments)
    for word in call.arguments:
        if DISK.match(word) and ("wipes" in record.flags or WIPES.search(text)):
            call.never("disk", f"it overwrites the disk {word}")
    if "bus" in record.flags and TURNS_OFF.search(text):
        call.never("power", "it turns the machine off")
    if call.name == "kexec" and call.options().has("-e", "--exec"):
        call.never("power", "it starts another system at once")
    if call.arguments in (["-D"], ["--list-interfaces"], ["-L"]) and "captures" in record.flags:
        return
    names = record.category == "credentials" and names_only(call)
    tells = record.category in TELLING and "wipes" not in record.flags
    if names or (tells and only_reads(call)):
        call.work(reason=READS_ONLY)
    else:
        call.ask(record.category, record.reason)


SHOWN_FILE = regex(r"(?i)[^:]*\.(html?|pdf|png|jpe?g|gif|svg|webp|md|txt|csv|mp[34]|json)")


def check_open(call: Call) -> None:
    """open and xdg-open may show a document of the project."""
    names = call.options().operands
    if (
        names
        and not call.options().pairs
        and all(SHOWN_FILE.fullmatch(name) and call.here(name) for name in names)
    ):
        call.work(reason="It shows a file of the workspace.")
    else:
        call.ask("shell_escape", "It drives other programs of this machine.")


def check_hermes(call: Call) -> None:
    """Hermes itself: reading is allowed, changing its rules is denied."""
    words = call.options(call.record.values).operands
    reading = {"sessions", "cost", "trace", "doctor", "logs", "prompt-size"}
    changing = {"prune", "import", "delete", "fork", "fix"}
    text = " ".join(call.arguments)
    if "--yolo" in call.arguments or words[:2] == ["config", "set"] or "approvals" in text:
        call.deny("own_state", "It changes the rules that Hermes itself works by.")
    elif (not words and call.options().has("--version", "-V", "--help")) or (
        words[:1] and words[0] in reading and not changing & set(words)
    ):
        return
    else:
        call.ask("own_state", "It starts or changes Hermes itself.")


# The schedule of a crontab line.
PLANNED = regex(r"^\s*(@\w+|([\d*/,a-zA-Z-]+\s+){5})\s*")
DEBUGGER_RUNS = regex(
    r"(?:shell|!|python|pipe|call|print|source|make|platform shell)\s*(.*)", re.DOTALL
)


def check_kill(call: Call) -> None:
    words = list(call.arguments)
    if words[:1] in (["-l"], ["-L"], ["--list"]) or words[:2] == ["-s", "0"]:
        return
    test_only = words[:1] == ["-0"]
    targets = words[1:] if words[:1] and words[0][:1] == "-" else words
    if words[:1] and words[0] in ("-s", "-n", "--signal") and len(words) > 1:
        targets = words[2:]
    targets = [word for word in targets if word != "--"]
    if "-1" in targets or (words and words[0] == "-1" and len(words) == 1):
        call.never("process_kill", "it kills every process")
    if not test_only and {"1", "+1"} & set(targets):
        call.never("process_kill", "it kills the process that all others hang on")
    own = all(word.startswith("%") for word in targets)
    if not own and not test_only:
        call.ask("process_kill", "It ends or changes processes that this session may not own.")


def check_gdb(call: Call) -> None:
    options = call.options(call.record.values, permute=False)
    words = call.arguments
    if options.values("-p", "--pid") or any("attach" in word for word in words):
        call.ask("process_kill", "It reaches into another process.")
    for place, word in enumerate(words[:-1]):
        if word in ("-ex", "-iex", "--eval-command", "-o", "-O"):
            found = DEBUGGER_RUNS.match(words[place + 1])
            if found:
                call.ask("shell_escape", "It makes the debugger run a command.")
                call.runs_text(found[1])
    for name in (*options.operands[:1], *options.values("-x", "--command", "-ix")):
        own_program(call, name)
    call.work(reason="It runs a program of the project in a debugger.")


def check_crontab(call: Call) -> Stream | None:
    if call.arguments not in (["-l"], ["-V"]) and not call.options("-u").has("-l"):
        call.ask("persistence", "It changes what runs by itself at set times.")
        for line in call.stdin.text.replace(UNKNOWN, "").split("\n")[:50]:
            call.probes(PLANNED.sub("", line))
    return ANYTHING

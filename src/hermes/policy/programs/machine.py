"""Programs that change the machine: power, disks, services, processes, users, the kernel."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.findings import LOOKING
from hermes.policy.options import Options
from hermes.policy.paths import DISK
from hermes.policy.patterns import regex
from hermes.policy.programs.looking import names_only, only_asked
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.shell.state import SOME, Stream

# What these programs tell is free to know.
TELLING = frozenset(
    ("system_config", "disk", "privilege", "persistence", "permissions", "package_install")
) | {"container", "process_kill"}
WIPES = regex(r"--zero-superblock|\b(eraseDisk|eraseVolume|zeroDisk|secureErase|labelclear)\b")
TURNS_OFF = regex(r"\b(PowerOff|Reboot|Halt|KExec|Hibernate|Shutdown)\b")


def check_power(call: Call) -> Stream | None:
    if call.name == "shutdown" and call.options().has("-c"):
        call.ask("power", "It changes a planned shutdown.")
    else:
        call.never("power", "it turns the machine off")
    return None


def check_init(call: Call) -> Stream | None:
    if {"0", "6", "1", "s", "S"} & set(call.arguments):
        call.never("power", "it turns the machine off")
    call.ask("services", "It changes what the machine runs.")
    return None


def check_disk_tool(call: Call) -> Stream | None:
    """Partition tables: listing is reading, everything else is the end of data."""
    options = call.options()
    reading = options.has("-l", "--list", "-p", "--print", "--version", "--help", "-V", "-v")
    if reading or "print" in call.arguments:
        return None
    device = any(DISK.match(call.path(word)) for word in options.operands)
    given = call.stdin.known and bool(call.stdin.text.strip())
    typed = given and (call.name == "sfdisk" or "w" in call.stdin.text.split())
    if device and (len(call.arguments) > 1 or typed):
        call.never("disk", "it changes the partitions of a disk")
    call.ask("disk", "It changes the partitions of a disk.")
    return None


def check_format(call: Call) -> Stream | None:
    call.reads(*call.options().operands)
    if call.options().has("--version", "-V", "--help"):
        return None
    names = call.options("-t -L -O -b -I -N -n -U -m -E").operands
    if names and all(call.here(each) for each in names):
        call.writes(*names)
        return None
    call.never("disk", "it formats or wipes a disk")
    return None


def check_hdparm(call: Call) -> Stream | None:
    text = " ".join(call.arguments)
    if re.search(r"--(security-erase|trim-sector|write-sector|make-bad|dco-restore)", text):
        call.never("disk", "it erases a disk")
    if call.name == "nvme" and re.search(r"\b(format|sanitize|write)", text):
        call.never("disk", "it erases a disk")
    call.ask("disk", "It changes how a disk works.")
    return None


def check_cryptsetup(call: Call) -> Stream | None:
    if re.search(r"(?i)luksformat|luksErase|\berase\b|reencrypt", " ".join(call.arguments)):
        call.never("disk", "it wipes a disk")
    call.ask("disk", "It opens or changes an encrypted disk.")
    return None


def check_ldconfig(call: Call) -> Stream | None:
    if call.arguments not in (["-p"], ["-V"], ["--print-cache"]):
        call.ask("system_config", "It changes which libraries programs load.")
    return None


def check_sysctl(call: Call) -> Stream | None:
    if call.options().has("-w", "-p", "--write", "--load", "--system") or any(
        "=" in word for word in call.arguments
    ):
        call.ask("system_config", "It changes settings of the kernel.")
    return None


def check_ip(call: Call) -> Stream | None:
    words = call.options("-n -netns -f -family").operands
    changing = {"add", "del", "delete", "set", "change", "replace", "flush", "exec", "append"}
    if changing & set(words):
        call.ask("system_config", "It changes the network of this machine.")
        if words[:2] == ["netns", "exec"]:
            call.runs(words[3:])
    return None


def check_ifconfig(call: Call) -> Stream | None:
    if len(call.options().operands) > 1 or (call.name == "route" and call.options().operands):
        call.ask("system_config", "It changes the network of this machine.")
    return None


def check_date(call: Call) -> Stream | None:
    options = Options(
        [word for word in call.arguments if not word.startswith(("-I", "--iso", "--rfc"))],
        "-d -s -r -f --date --set --reference --file",
    )
    words = [word for word in options.operands if not word.startswith("+")]
    if options.has("-s", "--set") or any(word.isdigit() for word in words):
        call.ask("system_config", "It changes the clock.")
    return Stream(text=SOME)


def check_hostname(call: Call) -> Stream | None:
    if call.options().operands or call.options().has("-F", "-b"):
        call.ask("system_config", "It changes the name of this machine.")
    return Stream(text=SOME)


def check_nmcli(call: Call) -> Stream | None:
    options = call.options(
        "-f -g -m -c -e -w --fields --get-values --mode --colors --escape --wait"
    )
    if options.has("-s", "--show-secrets") or "show-password" in call.arguments:
        call.ask("credentials", "It shows the passwords of networks.")
    return check_subcommands(call)


def check_journalctl(call: Call) -> Stream | None:
    if any(
        word.startswith(("--vacuum", "--rotate", "--flush", "--setup")) for word in call.arguments
    ):
        call.ask("system_config", "It deletes or changes the system's log.")
    return None


def check_dmesg(call: Call) -> Stream | None:
    if call.options().has("-c", "-C", "--clear", "-D", "-E", "-n"):
        call.ask("system_config", "It changes the log of the kernel.")
    return None


def check_mount(call: Call) -> Stream | None:
    if call.options("-t -o").operands or call.options().has("-a", "--all"):
        call.ask("disk", "It changes what is mounted.")
    return None


def check_ssh_keygen(call: Call) -> Stream | None:
    options = call.options("-f -t -b -C -N -P -I -n -O -s -w -Y")
    call.reads(*options.values("-f"))
    names = options.values("-f")
    if names and options.has("-t") and options.has("-N") and all(map(call.here, names)):
        # A new key without a history: ssh-keygen asks before it overwrites one.
        call.writes(*names)
    elif not options.has("-l", "-F", "-B"):
        call.ask("credentials", "It makes, shows or changes a key.")
    return None


def check_asked(call: Call) -> Stream | None:
    """Asks as the record says, unless the program is only told to look."""
    record, text = call.record, " ".join(call.arguments)
    for word in call.arguments:
        if DISK.match(word) and ("wipes" in record.flags or WIPES.search(text)):
            call.never("disk", f"it overwrites the disk {word}")
    if "bus" in record.flags and TURNS_OFF.search(text):
        call.never("power", "it turns the machine off")
    if call.name == "kexec" and call.options().has("-e", "--exec"):
        call.never("power", "it starts another system at once")
    if call.arguments in (["-D"], ["--list-interfaces"], ["-L"]) and "captures" in record.flags:
        return None
    names = record.category == "credentials" and names_only(call)
    tells = record.category in TELLING and "wipes" not in record.flags
    if names or (tells and only_asked(call)):
        call.work(reason=LOOKING)
    else:
        call.ask(record.category, record.reason)
    return None


def check_gio(call: Call) -> Stream | None:
    names = call.options().operands
    if names[:1] and names[0] in ("trash", "remove"):
        call.deletes(*names[1:], recursive=True)
    return check_subcommands(call)


SHOWN_FILE = regex(r"(?i)[^:]*\.(html?|pdf|png|jpe?g|gif|svg|webp|md|txt|csv|mp[34]|json)")


def check_open(call: Call) -> Stream | None:
    """open, xdg-open: a page or a picture of the project is only shown."""
    names = call.options().operands
    if (
        names
        and not call.options().pairs
        and all(SHOWN_FILE.fullmatch(name) and call.here(name) for name in names)
    ):
        call.work(reason="It shows a file of the workspace.")
    else:
        call.ask("shell_escape", "It drives other programs of this machine.")
    return None


def check_smartctl(call: Call) -> Stream | None:
    if call.options("-d -n -T -r -q -l").has("-t", "-s", "-o", "-S", "-X", "--test", "--set"):
        call.ask("disk", "It changes how a disk works or starts a test of it.")
    call.work(reason=LOOKING)
    return None


def check_hermes(call: Call) -> Stream | None:
    """Hermes itself: looking is free, changing its own rules is not."""
    words = call.options("-m --model --provider -z --resume -c").operands
    reading = {"sessions", "cost", "trace", "doctor", "logs", "prompt-size"}
    changing = {"prune", "import", "delete", "fork", "fix"}
    text = " ".join(call.arguments)
    if "--yolo" in call.arguments or words[:2] == ["config", "set"] or "approvals" in text:
        call.deny("own_state", "It changes the rules that Hermes itself works by.")
    elif (not words and call.options().has("--version", "-V", "--help")) or (
        words[:1] and words[0] in reading and not changing & set(words)
    ):
        return None
    else:
        call.ask("own_state", "It starts or changes Hermes itself.")
    return None

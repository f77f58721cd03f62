"""Programs that change a machine or a store when told to: how they are told only to look."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.vocabulary import TURNED, only_looks
from hermes.policy.shell.state import UNKNOWN

# Long options that ask, whatever the program is.
ASKING = regex(
    r"^--?(list|status|show|verify|check|dry-run|dryrun|detail|print|query|examine|describe|info|state"
    r"|get-(active|default|zones|services)|validate|simulate|just-print|no-act)($|[-=])"
)
# Short ones mean something else to each program, so each has its own.
LETTERS: dict[str, str] = {
    "iptables": "-L -S",
    "ip6tables": "-L -S",
    "ebtables": "-L",
    "arptables": "-L",
    "ufw": "status",
    "modprobe": "-n -c",
    "logrotate": "-d",
    "auditctl": "-l -s",
    "semanage": "-l",
    "efibootmgr": "-v",
    "pmset": "-g",
    "networksetup": "-listallhardwareports -listallnetworkservices -getinfo -getdnsservers",
    "softwareupdate": "-l",
    "plutil": "-p -lint",
    "codesign": "-d",
    "ssh-add": "-l",
    "losetup": "-a -l",
    "tune2fs": "-l",
    "fsck": "-n -N",
    "e2fsck": "-n",
    "xfs_repair": "-n",
    "swapon": "-s",
    "mdadm": "-D -E -Q",
    "passwd": "-S",
    "chage": "-l",
    "keytool": "-printcert",
    "nix-env": "-q",
    "emerge": "-p -s",
    "launchctl": "list print",
    "ethtool": "-i -S -k",
    "scutil": "--dns --proxy --nwi",
    "kinit": "-V",
    "at": "-l -c",
    "apparmor_parser": "-p",
    "haproxy": "-c",
}
# Their first words are orders; those of others are names, and somebody may be named `list`.
ORDERED = frozenset(
    """
    ufw nft zpool zfs btrfs diskutil hdiutil launchctl gsettings dconf bootctl wg lxc incus lxd
    crictl ctr runc virsh dscl flatpak guix asdf mise sdk mas port pkg pkgin brctl tc rfkill
    udisksctl dmsetup tlmgr raco vcpkg zypper opkg home-manager luarocks emerge
    """.split()
)
# What they print may be the secrets themselves, so only names and states may be asked for.
NAMES_ONLY = frozenset(("status", "version", "help", "list", "ls", "--list", "-l"))
PRINTS_ALL = frozenset(("bw", "keytool", "doppler", "secret-tool", "keyctl", "security"))
TELLS_SECRETS = regex(r"(?i)secret|private|password|passphrase|export|session-key|decrypt")


def only_asked(call: Call, *, ordered: bool = False) -> bool:
    """The words make it look at the machine, at a cluster or at a database, and at no more.
    `ordered` are programs whose first words are orders."""
    words = call.options().operands
    if any(UNKNOWN in word or TURNED.match(word) for word in call.arguments):
        return False
    letters = LETTERS.get(call.name, "").split()
    if ordered or call.name in ORDERED:
        return only_looks(words) or _asks(call.arguments, letters)
    plain = call.arguments in (["status"], ["/all"]) or (
        call.name == "ipconfig" and not call.arguments
    )
    return plain or _asks(call.arguments, letters)


def names_only(call: Call) -> bool:
    """A store of secrets is asked for their names, a key for its fingerprint or a signature."""
    words = call.options().operands
    if call.name == "keytool" and call.arguments[:1] in (["-printcert"], ["-printcrl"]):
        return True
    if call.name in PRINTS_ALL or TELLS_SECRETS.search(" ".join(call.arguments)):
        return False
    if words[:1] and words[0] not in NAMES_ONLY and words[1:2] != ["list"]:
        return _asks(call.arguments[:1], ())
    return bool(words) or _asks(call.arguments, LETTERS.get(call.name, "").split())


def _asks(words: Sequence[str], letters: Sequence[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    single = {each[1] for each in letters if len(each) == 2 and each[0] == "-"}
    return any(
        ASKING.match(word)
        or word in letters
        or (word[1:2] != "-" and len(word) < 6 and not single.isdisjoint(word[1:]))
        for word in options
    )

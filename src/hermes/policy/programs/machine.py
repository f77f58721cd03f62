"""Programs that change the machine: power, disks, services, processes, users, the kernel."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Check
from hermes.policy.findings import LOOKING
from hermes.policy.options import Options
from hermes.policy.paths import DISK
from hermes.policy.patterns import regex
from hermes.policy.programs.looking import names_only, only_asked
from hermes.policy.programs.verbs import Verbs, verbs
from hermes.policy.shell.state import SOME, Stream

ASKED: dict[str, tuple[str, str]] = {
    "system_config": (
        """modprobe insmod rmmod depmod iptables ip6tables ebtables arptables nft ufw firewall-cmd
        update-alternatives alternatives ldconfig update-grub grub-install grub-mkconfig
        grub2-install dpkg-reconfigure update-initramfs mkinitcpio dracut update-rc.d
        chkconfig authconfig pam-auth-update ifup ifdown brctl tc ethtool wpa_supplicant
        setenforce semanage setsebool restorecon chcon aa-disable aa-enforce aa-complain
        apparmor_parser csrutil spctl nvram pmset systemsetup networksetup scutil
        launchctl kextload hwclock rfkill efibootmgr kexec update-ca-certificates
        openvpn wg-quick wg ipsec locale-gen debconf-set-selections tzselect dconf
        gsettings bootctl nmtui vconfig plutil codesign ipconfig
        logrotate auditctl""",
        "It changes the configuration of the system.",
    ),
    "disk": (
        """mount umount losetup lvremove lvcreate lvextend lvreduce vgremove vgcreate pvremove
        pvcreate zpool zfs swapoff swapon mdadm e2label tune2fs resize2fs xfs_growfs fsck e2fsck
        xfs_repair diskutil hdiutil fstrim btrfs partprobe kpartx growpart debugfs dmsetup
        eject fusermount badblocks testdisk photorec ddrescue partclone clonezilla
        qemu-nbd udisksctl nwipe""",
        "It changes disks or what is mounted.",
    ),
    "privilege": (
        """useradd userdel usermod adduser deluser groupadd groupdel groupmod gpasswd
        passwd chpasswd visudo vipw vigr chsh chfn setcap newusers pwconv grpck
        addgroup delgroup dscl sysadminctl pam_tally2 faillock loginctl kinit
        ssh-copy-id""",
        "It changes who has which rights on this machine.",
    ),
    "persistence": (
        "at batch atrm anacron incrontab systemd-tmpfiles update-motd run-parts",
        "It leaves something behind that runs later by itself.",
    ),
    "credentials": (
        """security secret-tool pass gopass op bw lpass keyctl gpg-agent ssh-add ssh-keygen gpg gpg2
        keytool vault chamber sops age doppler aws-vault git-credential-manager keyring
        kwallet-query rbw keepassxc-cli kpcli bws dcli ansible-vault hashcat john
        unshadow chntpw""",
        "It shows, makes or changes keys and passwords.",
    ),
    "exfiltration": (
        "import scrot maim flameshot gnome-screenshot spectacle screencapture arecord parecord "
        "fswebcam xwd",
        "It records the screen, the microphone or a camera.",
    ),
    "process_kill": (
        "killall xkill skill snice renice gcore reptyr criu ",
        "It ends or changes processes that this session did not start.",
    ),
    "permissions": ("chattr setfacl setfattr chacl", "It changes who may do what with files."),
    "package_install": (
        """dpkg rpm apk pacman yay paru emerge zypper flatpak guix opkg installer softwareupdate mas
        pkg pkgin port slackpkg xbps-install eopkg nix-env nixos-rebuild home-manager asdf
        mise sdk cpan cpanm luarocks easy_install tlmgr raco vcpkg""",
        "It installs or removes packages.",
    ),
    "network_out": (
        "nmap masscan hping3 zmap arp-scan tcpdump tshark dumpcap ettercap nikto "
        "sqlmap hydra medusa metasploit msfconsole msfvenom aircrack-ng responder",
        "It probes or listens to other machines.",
    ),
    "delete": ("trash-empty empty-trash bleachbit", "It deletes files for good."),
    "git_history": ("bfg", "It rewrites history."),
    "container": (
        "lxc incus lxd crictl ctr runc crun virsh qemu-system-x86_64",
        "It works on containers or machines that others may use.",
    ),
    "shell_escape": (
        "open xdg-open gnome-open start wmctrl xdotool ydotool xte xinput xev "
        "dbus-send gdbus busctl qdbus wall write",
        "It drives other programs of this machine.",
    ),
}
# What these programs tell is free to know.
TELLING = frozenset(
    ("system_config", "disk", "privilege", "persistence", "permissions", "package_install")
) | {"container", "process_kill"}
CAPTURING = frozenset(("tcpdump", "tshark", "dumpcap"))
WIPERS = frozenset(("badblocks", "nwipe", "ddrescue", "pvremove", "partclone", "pvcreate"))
WIPES = regex(r"--zero-superblock|\b(eraseDisk|eraseVolume|zeroDisk|secureErase|labelclear)\b")
BUSES = frozenset(("dbus-send", "gdbus", "busctl", "qdbus"))
TURNS_OFF = regex(r"\b(PowerOff|Reboot|Halt|KExec|Hibernate|Shutdown)\b")
REPEATING = {"fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "cgdisk"}


def _power(call: Call) -> Stream | None:
    if call.name == "shutdown" and call.options().has("-c"):
        call.ask("power", "It changes a planned shutdown.")
    else:
        call.never("power", "it turns the machine off")
    return None


def _init(call: Call) -> Stream | None:
    if {"0", "6", "1", "s", "S"} & set(call.arguments):
        call.never("power", "it turns the machine off")
    call.ask("services", "It changes what the machine runs.")
    return None


def _disk_tool(call: Call) -> Stream | None:
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


def _format(call: Call) -> Stream | None:
    call.reads(*call.options().operands)
    if call.options().has("--version", "-V", "--help"):
        return None
    names = call.options("-t -L -O -b -I -N -n -U -m -E").operands
    if names and all(call.here(each) for each in names):
        call.writes(*names)
        return None
    call.never("disk", "it formats or wipes a disk")
    return None


def _hdparm(call: Call) -> Stream | None:
    text = " ".join(call.arguments)
    if re.search(r"--(security-erase|trim-sector|write-sector|make-bad|dco-restore)", text):
        call.never("disk", "it erases a disk")
    if call.name == "nvme" and re.search(r"\b(format|sanitize|write)", text):
        call.never("disk", "it erases a disk")
    call.ask("disk", "It changes how a disk works.")
    return None


def _cryptsetup(call: Call) -> Stream | None:
    if re.search(r"(?i)luksformat|luksErase|\berase\b|reencrypt", " ".join(call.arguments)):
        call.never("disk", "it wipes a disk")
    call.ask("disk", "It opens or changes an encrypted disk.")
    return None


def _ldconfig(call: Call) -> Stream | None:
    if call.arguments not in (["-p"], ["-V"], ["--print-cache"]):
        call.ask("system_config", "It changes which libraries programs load.")
    return None


def _sysctl(call: Call) -> Stream | None:
    if call.options().has("-w", "-p", "--write", "--load", "--system") or any(
        "=" in word for word in call.arguments
    ):
        call.ask("system_config", "It changes settings of the kernel.")
    return None


def _ip(call: Call) -> Stream | None:
    words = call.options("-n -netns -f -family").operands
    changing = {"add", "del", "delete", "set", "change", "replace", "flush", "exec", "append"}
    if changing & set(words):
        call.ask("system_config", "It changes the network of this machine.")
        if words[:2] == ["netns", "exec"]:
            call.runs(words[3:])
    return None


def _ifconfig(call: Call) -> Stream | None:
    if len(call.options().operands) > 1 or (call.name == "route" and call.options().operands):
        call.ask("system_config", "It changes the network of this machine.")
    return None


def _date(call: Call) -> Stream | None:
    options = Options(
        [word for word in call.arguments if not word.startswith(("-I", "--iso", "--rfc"))],
        "-d -s -r -f --date --set --reference --file",
    )
    words = [word for word in options.operands if not word.startswith("+")]
    if options.has("-s", "--set") or any(word.isdigit() for word in words):
        call.ask("system_config", "It changes the clock.")
    return Stream(text=SOME)


def _hostname(call: Call) -> Stream | None:
    if call.options().operands or call.options().has("-F", "-b"):
        call.ask("system_config", "It changes the name of this machine.")
    return Stream(text=SOME)


def _nmcli(call: Call) -> Stream | None:
    options = call.options(
        "-f -g -m -c -e -w --fields --get-values --mode --colors --escape --wait"
    )
    if options.has("-s", "--show-secrets") or "show-password" in call.arguments:
        call.ask("credentials", "It shows the passwords of networks.")
    return _NMCLI(call)


def _settings(reading: str) -> Check:
    """hostnamectl and its relatives."""
    return verbs(Verbs(reads=reading, otherwise="system_config"))


def _journalctl(call: Call) -> Stream | None:
    if any(
        word.startswith(("--vacuum", "--rotate", "--flush", "--setup")) for word in call.arguments
    ):
        call.ask("system_config", "It deletes or changes the system's log.")
    return None


def _dmesg(call: Call) -> Stream | None:
    if call.options().has("-c", "-C", "--clear", "-D", "-E", "-n"):
        call.ask("system_config", "It changes the log of the kernel.")
    return None


def _mount(call: Call) -> Stream | None:
    if call.options("-t -o").operands or call.options().has("-a", "--all"):
        call.ask("disk", "It changes what is mounted.")
    return None


def _ssh_keygen(call: Call) -> Stream | None:
    options = call.options("-f -t -b -C -N -P -I -n -O -s -w -Y")
    call.reads(*options.values("-f"))
    names = options.values("-f")
    if names and options.has("-t") and options.has("-N") and all(map(call.here, names)):
        # A new key without a history: ssh-keygen asks before it overwrites one.
        call.writes(*names)
    elif not options.has("-l", "-F", "-B"):
        call.ask("credentials", "It makes, shows or changes a key.")
    return None


def _asking(category: str, reason: str) -> Check:
    def check(call: Call) -> Stream | None:
        text = " ".join(call.arguments)
        for word in call.arguments:
            if DISK.match(word) and (call.name in WIPERS or WIPES.search(text)):
                call.never("disk", f"it overwrites the disk {word}")
        if call.name in BUSES and TURNS_OFF.search(text):
            call.never("power", "it turns the machine off")
        if call.name == "kexec" and call.options().has("-e", "--exec"):
            call.never("power", "it starts another system at once")
        if call.arguments in (["-D"], ["--list-interfaces"], ["-L"]) and call.name in CAPTURING:
            return None
        names = category == "credentials" and names_only(call)
        if names or (category in TELLING and call.name not in WIPERS and only_asked(call)):
            call.work(reason=LOOKING)
        else:
            call.ask(category, reason)
        return None

    return check


SHOWN_FILE = regex(r"(?i)[^:]*\.(html?|pdf|png|jpe?g|gif|svg|webp|md|txt|csv|mp[34]|json)")


def _open(call: Call) -> Stream | None:
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


def _smartctl(call: Call) -> Stream | None:
    if call.options("-d -n -T -r -q -l").has("-t", "-s", "-o", "-S", "-X", "--test", "--set"):
        call.ask("disk", "It changes how a disk works or starts a test of it.")
    call.work(reason=LOOKING)
    return None


def _hermes(call: Call) -> Stream | None:
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


_NMCLI = verbs(
    Verbs(
        reads="general device:status device:show connection:show con:show dev:status "
        "device:wifi dev:wifi device:wifi:list dev:wifi:list device:wifi:rescan dev:wifi:rescan",
        asks={
            "system_config": "device:wifi:connect dev:wifi:connect device:wifi:hotspot "
            "dev:wifi:hotspot",
            "credentials": "device:wifi:show-password dev:wifi:show-password",
        },
        taking="-f -g -m -c -e -w --fields --get-values --mode --colors --escape --wait",
        otherwise="system_config",
    )
)
MACHINE: dict[str, Check] = {
    name: _asking(category, reason)
    for category, (names, reason) in ASKED.items()
    for name in names.split()
}
MACHINE |= {
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), _power),
    **dict.fromkeys(("init", "telinit"), _init),
    **dict.fromkeys(REPEATING, _disk_tool),
    **dict.fromkeys(
        """mkfs mke2fs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat
        mkfs.ntfs mkfs.f2fs mkfs.exfat mkfs.msdos mkfs.minix mkdosfs mkntfs mkswap wipefs
        blkdiscard newfs newfs_hfs newfs_apfs sg_format""".split(),
        _format,
    ),
    **dict.fromkeys(("hdparm", "nvme", "sdparm"), _hdparm),
    "cryptsetup": _cryptsetup,
    "killall5": _power,
    "ldconfig": _ldconfig,
    "sysctl": _sysctl,
    "ip": _ip,
    **dict.fromkeys(("ifconfig", "route", "iwconfig"), _ifconfig),
    "date": _date,
    "ssh-keygen": _ssh_keygen,
    **dict.fromkeys(("hostname", "domainname"), _hostname),
    "hostnamectl": _settings("status"),
    "timedatectl": _settings("status show list-timezones timesync-status"),
    "localectl": _settings("status list-locales list-keymaps"),
    "resolvectl": _settings("status query statistics"),
    "nmcli": _nmcli,
    "networkctl": _settings("status list"),
    "defaults": _settings("read domains find read-type"),
    **dict.fromkeys(("open", "xdg-open", "gnome-open"), _open),
    "smartctl": _smartctl,
    "journalctl": _journalctl,
    "dmesg": _dmesg,
    "mount": _mount,
    "hermes": _hermes,
    "xattr": verbs(Verbs(reads="", otherwise="permissions")),
    "gio": verbs(
        Verbs(
            reads="info list tree cat mime", asks={"delete": "trash remove"}, otherwise="overwrite"
        ),
        lambda call, verb, options: (
            call.deletes(*options.operands[1:], recursive=True)
            if verb.startswith(("trash", "remove"))
            else None
        ),
    ),
}

"""Python functions and modules by effect."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable

from hermes.policy.patterns import regex

DELETES = frozenset(
    "os.remove os.unlink os.rmdir os.removedirs shutil.rmtree pathlib.unlink".split()
)
# Function: which of its arguments are written.
WRITES: dict[str, tuple[int, ...]] = {
    "shutil.copy": (1,),
    "shutil.copy2": (1,),
    "shutil.copyfile": (1,),
    "shutil.copytree": (1,),
    "shutil.move": (0, 1),
    "shutil.make_archive": (0,),
    "shutil.chown": (0,),
    "os.rename": (0, 1),
    "os.replace": (0, 1),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.truncate": (0,),
    "os.mkdir": (0,),
    "os.makedirs": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.open": (0,),
    "os.mkfifo": (0,),
}
PATH_WRITES = frozenset("write_text write_bytes touch mkdir symlink_to hardlink_to chmod".split())
# Endings of expressions that are paths.
PATHS = ("Path()", "Path.home()", "Path.cwd()", ".parent", "joinpath()", "with_suffix()")
PATH_DELETES = frozenset(("unlink", "rmdir", "rmtree", "removedirs"))
LISTENS = frozenset(("socketserver", "http.server", "wsgiref", "asyncio.start_server"))
FETCHES = frozenset("requests.get requests.head httpx.get urllib.request.urlopen".split())
# Functions of network modules that contact nobody.
SILENT = regex(
    r"(requests|httpx|urllib\.request)\.\w+\(\)\.|socket\.get(hostname|fqdn|defaulttimeout|servbyname)$"
    r"|ssl\.(create_default_context|get_default_verify_paths|OPENSSL_VERSION)"
)
TEMPORARY = frozenset(("tempfile.mkdtemp", "tempfile.TemporaryDirectory", "tempfile.mktemp"))
DECODERS: dict[str, Callable[[str], str]] = {
    "b64decode": lambda text: base64.b64decode(text + "===").decode("utf-8", "replace"),
    "urlsafeb64decode": lambda text: base64.urlsafe_b64decode(text + "===").decode(
        errors="replace"
    ),
    "b32decode": lambda text: base64.b32decode(text).decode("utf-8", "replace"),
    "b16decode": lambda text: base64.b16decode(text, True).decode("utf-8", "replace"),
    "fromhex": lambda text: bytes.fromhex(text).decode("utf-8", "replace"),
    "unhexlify": lambda text: bytes.fromhex(text).decode("utf-8", "replace"),
    "hex": lambda text: bytes.fromhex(text).decode("utf-8", "replace"),
    "rot13": lambda text: codecs.decode(text, "rot13"),
}
OTHERS = {
    "os.kill": ("process_kill", "Its code ends another process."),
    "os.killpg": ("process_kill", "Its code ends other processes."),
    "os.setuid": ("privilege", "Its code changes whose rights it has."),
    "os.setgid": ("privilege", "Its code changes whose rights it has."),
    "os.chroot": ("container", "Its code changes its root folder."),
    "os.reboot": ("power", "Its code turns the machine off."),
    "psutil.Process": ("process_kill", "Its code reaches for another process."),
    "keyring.get_password": ("credentials", "Its code reads a stored password."),
}

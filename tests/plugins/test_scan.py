"""What a look at the code of a plugin finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from hermes.plugins.install import scan_code

SUSPICIOUS = {
    "eval(x)": "runs text as code",
    "from os import system as s\ns('x')": "starts programs",
    "import os as o\no.popen('x')": "starts programs",
    "import subprocess": "starts programs",
    "import ctypes": "calls the system directly",
    "open('/home/me/.ssh/id_rsa')": "keys or logins",
    "p = '~/.hermes/.env'": "keys or logins",
    f"x = {'QUJD' * 200!r}": "long unreadable",
    "getattr(os, 'sys' + 'tem')('x')": "computed names",
    "().__class__.__bases__[0].__subclasses__()": "accesses interpreter internals",
    "import marshal": "unpacks code",
    "import socket": "uses the network",
    "import os\nos.environ": "reads environment variables",
    "x = (": "cannot be read",
}


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_what_looks_odd_is_told_with_its_place(code: str) -> None:
    findings = scan_code({"__init__.py": code.encode()})
    assert any(SUSPICIOUS[code] in each.words for each in findings)
    assert {each.file for each in findings} == {"__init__.py"}


def test_the_worst_comes_first() -> None:
    code = b"import socket\nimport subprocess\nexec('x')\n"
    assert [each.level for each in scan_code({"a.py": code})] == ["high", "medium", "low"]


def test_files_that_other_programs_run_are_told() -> None:
    found = scan_code({"setup.py": b"", "x.pth": b"", "lib.so": b"\x7fELF"})
    assert [each.file for each in found] == ["lib.so", "setup.py", "x.pth"]


@pytest.mark.parametrize(
    "code",
    [
        "import json\ndef register(ctx): pass",
        "# os.system is not used here\nprint('eval')",
        "from hermes.plugins.api import Plugin",
        "import re\nre.compile('x')",
    ],
)
def test_ordinary_code_is_left_alone(code: str) -> None:
    assert scan_code({"a.py": code.encode()}) == ()

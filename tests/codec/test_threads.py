"""Threads may meet a kind of value at the same time."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys, threading
from hermes.codec.json import encode
from hermes.core.events import TurnEnded
from hermes.core.messages import Usage
from hermes.journal.body_templates import event_of

sys.setswitchinterval(1e-6)
gc.set_threshold(50)
body = encode(TurnEnded(reason="done", usage=Usage(input=1)))
together = threading.Barrier(6)


def work():
    together.wait()
    for _ in range(30):
        assert event_of("turn_ended", 1, body).usage.input == 1


threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_decode_their_first_event_at_once_survive() -> None:
    runs = [subprocess.Popen([sys.executable, "-c", PROGRAM]) for _ in range(8)]
    assert [run.wait() for run in runs] == [0] * 8

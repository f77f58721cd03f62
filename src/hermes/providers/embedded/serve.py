"""The program of the helper process: llama.cpp's server for one file, for as long as stdin is open.

It runs beside Hermes because loading and stopping inside our process hold the interpreter lock:
nothing else would move, and a file that makes the runtime abort would take every session along.
Started as a script, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import IO, Any

# More than one request at a time would share the same cores and split the window.
_AT_ONCE = 1
# A cancelled request is noticed between two batches.
_BATCH_TOKENS = 256
_HTTP_THREADS = 4
# Prompts of conversations that wait while another one is answered.
_KEPT_PROMPTS_MIB = 512
_ONLY_ERRORS = 1


def main() -> None:
    wish = json.loads(sys.stdin.readline())
    # The runtime writes to both streams as it likes.
    kept = os.dup(1)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        server, told = _started(wish, log)
    os.write(kept, json.dumps(told).encode() + b"\n")
    os.close(kept)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if server is not None:
        sys.stdin.read()
    # The runtime's own way to stop can wait for ever; there is nothing to save.
    os._exit(0)


def _started(wish: dict[str, Any], log: IO[bytes]) -> tuple[Any, dict[str, str]]:
    # OpenMP reads this when its library is loaded. Threads that wait actively would slow down
    # everything else on the machine, and with it the model itself.
    os.putenv("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        return None, {"missing": str(error)}
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, wish))
    except RuntimeError as error:
        return None, {"error": _reason(log) or str(error)}
    return server, {"address": server.listening_address}


def _parameters(xllamacpp: Any, wish: dict[str, Any]) -> Any:
    made = xllamacpp.CommonParams()
    made.model.path = wish["path"]
    made.n_ctx = wish["window"]
    made.cpuparams.n_threads = wish["threads"]
    made.cpuparams_batch.n_threads = wish["threads"]
    made.n_parallel = _AT_ONCE
    made.n_batch = _BATCH_TOKENS
    made.n_ubatch = _BATCH_TOKENS
    made.n_threads_http = _HTTP_THREADS
    made.cache_ram_mib = _KEPT_PROMPTS_MIB
    made.verbosity = _ONLY_ERRORS
    made.warmup = False
    made.offline = True
    # Whatever else runs on this machine, web pages included, gets nothing from here.
    made.api_keys = [wish["key"]]
    made.cors_origins = ""
    made.ui = False
    made.endpoint_slots = False
    return made


def _reason(log: IO[bytes]) -> str:
    """The runtime's own words about the failure: its first error names the cause."""
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if " E " in line), "")
    return first.partition(" E ")[2].rpartition("error loading model: ")[2].strip()


if __name__ == "__main__":
    main()

"""The helper process: runs llama.cpp's server for one file as long as stdin is open.

It is a separate process, because the runtime holds the interpreter lock while it loads and stops,
and a file that makes it abort would end every session. Runs as a script, so it imports nothing of
ours.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import IO, Any

# Parallel requests would share the cores and split the window.
_PARALLEL = 1
# Cancellation is noticed between two batches.
_BATCH_TOKENS = 256
_HTTP_THREADS = 4
# Cached prompts of conversations that wait for another one.
_PROMPT_CACHE_MIB = 512
_ONLY_ERRORS = 1


def main() -> None:
    request = json.loads(sys.stdin.readline())
    # The runtime writes to both streams.
    result_fd = os.dup(1)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        server, result = _start(request, log)
    os.write(result_fd, json.dumps(result).encode() + b"\n")
    os.close(result_fd)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    if server is not None:
        sys.stdin.read()
    # The runtime's shutdown can hang, and there is nothing to save.
    os._exit(0)


def _start(request: dict[str, Any], log: IO[bytes]) -> tuple[Any, dict[str, str]]:
    # OpenMP reads this when its library is loaded. Busy waiting would slow down the whole machine,
    # including the model.
    os.putenv("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        return None, {"missing": str(error)}
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, request))
    except RuntimeError as error:
        return None, {"error": _reason(log) or str(error)}
    return server, {"address": server.listening_address}


def _parameters(xllamacpp: Any, request: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = request["path"]
    params.n_ctx = request["window"]
    params.cpuparams.n_threads = request["threads"]
    params.cpuparams_batch.n_threads = request["threads"]
    params.n_parallel = _PARALLEL
    params.n_batch = _BATCH_TOKENS
    params.n_ubatch = _BATCH_TOKENS
    params.n_threads_http = _HTTP_THREADS
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = _ONLY_ERRORS
    params.warmup = False
    params.offline = True
    # No other program or web page on this machine gets access.
    params.api_keys = [request["key"]]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    return params


def _reason(log: IO[bytes]) -> str:
    """Return the cause of the failure, from the runtime's first error line."""
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if " E " in line), "")
    return first.partition(" E ")[2].rpartition("error loading model: ")[2].strip()


if __name__ == "__main__":
    main()

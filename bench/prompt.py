"""How much is sent before the user says a word: the first request of a fresh home, in tokens."""

from __future__ import annotations

import os
import subprocess
import tempfile

import bpe_openai

from bench.measure import HERMES, report
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        ScriptedServer.in_thread([says("hello")]) as server,
    ):
        env = {
            **os.environ,
            "HERMES_HOME": home,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "k",
        }
        subprocess.run(
            [HERMES, "-m", "test", "-z", "hi"], env=env, cwd=home, check=True, capture_output=True
        )
        body = server.requests[0].raw.decode()
        tokens = bpe_openai.get_encoding("o200k_base").encode(body)
        report(
            "fixed_prompt",
            tokens=len(tokens),
            bytes=len(body),
            requests=len(server.requests) + len(server.probes),
            goal="tokens <= 3000, bytes <= 12000, one request",
        )


if __name__ == "__main__":
    main()

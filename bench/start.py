"""How fast Hermes starts: the version, one answer of an instant model, each against its floor."""

from __future__ import annotations

import os
import tempfile

from bench.measure import HERMES, PYTHON, best_cost, report, rounded
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

BARE_CALL = """
import sys, http.client, json
from urllib.parse import urlsplit
place = urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(place.hostname, place.port)
body = json.dumps({"model": "test", "messages": [{"role": "user", "content": "hi"}]})
connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
print(connection.getresponse().read())
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HERMES_HOME": home}
        bare = best_cost([PYTHON, "-c", "pass"], env)
        version = best_cost([HERMES, "--version"], env)
        report(
            "version",
            cpu_seconds=rounded(version.cpu),
            floor_bare_python=rounded(bare.cpu),
            ratio=rounded(version.cpu / bare.cpu, 2),
            goal="ratio <= 1.3",
        )
        with ScriptedServer.in_thread([says("hello")], loop=True, strict=False) as server:
            env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
            one = best_cost([HERMES, "-m", "test", "-z", "hi"], env)
            floor = best_cost([PYTHON, "-c", BARE_CALL, server.url], env)
            report(
                "oneshot",
                cpu_seconds=rounded(one.cpu),
                wall_seconds=rounded(one.wall),
                rss_mb=rounded(one.rss, 1),
                floor_bare_http_call=rounded(floor.cpu),
                ratio=rounded(one.cpu / floor.cpu, 2),
                goal="cpu <= 0.15, rss <= 35",
            )


if __name__ == "__main__":
    main()

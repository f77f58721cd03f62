"""A scan of every route from outside: nobody without a credential gets anywhere, nothing breaks."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hermes.surfaces.api.routes import ROUTES, Route
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import HERMES, Serving, serving, sse

PROTECTED = [route for route in ROUTES if route.scope is not None]
NAMES = [f"{route.method} {route.path}" for route in PROTECTED]
SAMPLES: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hi"}],
    "input": "hi",
    "text": "hi",
    "decision": "once",
    "name": "n",
    "prompt": "p",
    "schedule": "1h",
}


@pytest.fixture(scope="module")
def stranger(api: Serving) -> Iterator[httpx2.Client]:
    with api.client(headers={}) as client:
        yield client


def send(stranger: httpx2.Client, route: Route, **headers: str) -> httpx2.Response:
    path = route.path.replace("{id}", "x")
    body = SAMPLES if route.body is not None else None
    return stranger.request(route.method, path, json=body, headers=headers)


@pytest.mark.parametrize("route", PROTECTED, ids=NAMES)
def test_a_route_takes_nobody_without_its_token(
    api: Serving, stranger: httpx2.Client, model: Model, route: Route
) -> None:
    asked = len(model.server.requests)
    good = f"Bearer {api.token}"
    assert send(stranger, route).status_code == 401
    for bad in ("Bearer wrong", "Bearer", f"Basic {api.token}", f"Bearer {api.token[:-1]}"):
        assert send(stranger, route, Authorization=bad).status_code == 401
    assert send(stranger, route, Authorization=good, Host="evil.example").status_code == 403
    assert (
        send(stranger, route, Authorization=good, Host="127.0.0.1.evil.example").status_code == 403
    )
    for origin in ("https://evil.example", "null", "http://localhost:3000"):
        done = send(stranger, route, Authorization=good, Origin=origin)
        assert done.status_code == 403
        assert "access-control-allow-origin" not in done.headers
    assert len(model.server.requests) == asked


@pytest.mark.parametrize(
    "route",
    [r for r in PROTECTED if "{id}" in r.path],
    ids=lambda route: f"{route.method} {route.path}",
)
@pytest.mark.parametrize(
    "id", ["..%2f..%2fetc%2fpasswd", "..", "%2e%2e", "x%00y", "a%0d%0aX-Evil:%201", "x" * 300]
)
def test_an_id_leads_nowhere_else(api: Serving, route: Route, id: str) -> None:
    with socket.create_connection(("127.0.0.1", api.port), timeout=60) as line:
        path = route.path.replace("{id}", id)
        body = b'{"text":"x","decision":"once","input":"x"}' if route.body is not None else b""
        line.sendall(
            f"{route.method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Authorization: Bearer {api.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = b"".join(iter(lambda: line.recv(65_536), b""))
    status = int(answer.split()[1])
    assert 400 <= status < 500 or status == 501
    assert b"x-evil" not in answer.lower().split(b"\r\n\r\n")[0]
    assert b"root:" not in answer


def test_what_everybody_may_ask_tells_next_to_nothing(api: Serving) -> None:
    public = [route.path for route in ROUTES if route.scope is None]
    assert public == ["/health", "/v1/health", "/health/ready"]
    payload = [httpx2.get(api.url + path, timeout=60).json() for path in public]
    assert payload[0] == payload[1] == {"status": "ok", "platform": "hermes-agent"}
    assert payload[2] == {"status": "ready"}


def test_headers_cannot_be_injected(api: Serving) -> None:
    for evil in (b"a\r\nX-Evil: 1", b"a\nX-Evil: 1", b"a\x00b"):
        with socket.create_connection(("127.0.0.1", api.port), timeout=60) as line:
            line.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                b"Authorization: Bearer " + api.token.encode() + b"\r\n"
                b"X-Hermes-Session-Id: " + evil + b"\r\nContent-Length: 2\r\n\r\n{}"
            )
            answer = b"".join(iter(lambda: line.recv(65_536), b""))
        assert 400 <= int(answer.split()[1]) < 500
        assert b"x-evil" not in answer.lower().split(b"\r\n\r\n")[0]


@pytest.fixture(scope="module")
def limited(api: Serving) -> dict[str, str]:
    env = {"HERMES_HOME": str(api.home), "PATH": "/usr/bin:/bin", "HOME": str(api.home.parent)}
    made = subprocess.run(
        [HERMES, "serve", "token", "add", "phone"],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


def test_a_scoped_token_reaches_its_own_sessions_only(
    api: Serving, model: Model, limited: dict[str, str]
) -> None:
    with api.client() as owner, api.client(headers=limited) as phone:
        body = {"messages": [{"role": "user", "content": "mine"}]}
        run = owner.post("/v1/chat/completions", json=body)
        theirs, run_id = run.headers["x-hermes-session-id"], run.headers["x-hermes-run-id"]
        stored = owner.post("/v1/responses", json={"input": "x"}).json()["id"]
        header = {"X-Hermes-Session-Id": theirs}
        assert phone.post("/v1/chat/completions", json=body, headers=header).status_code == 404
        assert phone.post("/v1/runs", json={"input": "x", "session_id": theirs}).status_code == 404
        for path in (
            f"/api/sessions/{theirs}",
            f"/api/sessions/{theirs}/messages",
            f"/v1/runs/{run_id}",
            f"/v1/runs/{run_id}/events",
            f"/v1/responses/{stored}",
        ):
            assert phone.get(path).status_code == 404, path
        assert phone.delete(f"/api/sessions/{theirs}").status_code == 404
        assert phone.post(f"/api/sessions/{theirs}/fork", json={}).status_code == 404
        assert phone.get("/metrics").status_code == 403
        yes = {"decision": "always"}
        assert phone.post(f"/v1/runs/{run_id}/approval", json=yes).status_code == 403
        assert phone.get("/api/jobs").status_code == 403
        own = phone.post("/v1/chat/completions", json=body).headers["x-hermes-session-id"]
        listed = [each["id"] for each in phone.get("/api/sessions").json()["sessions"]]
        assert listed == [own]
        assert owner.get(f"/api/sessions/{own}").json()["source"] == "api:phone"


def test_the_agent_of_a_scoped_token_does_not_see_the_past_either(
    api: Serving, model: Model, limited: dict[str, str]
) -> None:
    results: list[str] = []

    def rule(request: Request) -> Step:
        payload = [each for each in request.body["messages"] if each["role"] == "tool"]
        if payload:
            results.append(str(payload[-1]["content"]))
            return says("seen")
        said = str(request.body["messages"][-1]["content"])
        return calls("session_search", query="zanzibar") if "search" in said else says("noted")

    model.rule = rule
    with api.client() as owner, api.client(headers=limited) as phone:
        chat = "/v1/chat/completions"
        said = {"messages": [{"role": "user", "content": "the word is zanzibar, kept by me"}]}
        assert owner.post(chat, json=said).status_code == 200
        asks = {"messages": [{"role": "user", "content": "search it"}]}
        assert phone.post(chat, json=asks).status_code == 200
        assert owner.post(chat, json=asks).status_code == 200
    theirs, own = results
    assert "kept by me" in own
    assert "kept by me" not in theirs


def test_a_scoped_token_is_not_asked(api: Serving, model: Model, limited: dict[str, str]) -> None:
    def rule(request: Request) -> Step:
        if any(each["role"] == "tool" for each in request.body["messages"]):
            return says("was refused")
        return calls("terminal", command="sudo -n true")

    model.rule = rule
    with api.client(headers=limited) as phone:
        made = phone.post("/v1/runs", json={"input": "be root"}).json()
        with phone.stream("GET", f"/v1/runs/{made['run_id']}/events") as stream:
            names = [name for _, name, _ in sse(stream.iter_lines())]
    assert "approval.request" not in names
    assert names[-1] == "run.completed"


def test_a_removed_token_is_refused_at_once(api: Serving) -> None:
    env = {"HERMES_HOME": str(api.home), "PATH": "/usr/bin:/bin", "HOME": str(api.home.parent)}

    def token(*words: str) -> str:
        command = [HERMES, "serve", "token", *words]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    made = token("add", "brief", "--scope", "chat")
    header = {"Authorization": f"Bearer {made}"}
    assert httpx2.get(f"{api.url}/v1/models", headers=header, timeout=60).status_code == 200
    assert made not in (api.home / "api_tokens.json").read_text()
    assert "brief" in token("list")
    token("remove", "brief")
    assert httpx2.get(f"{api.url}/v1/models", headers=header, timeout=60).status_code == 401


def test_a_page_reads_streams_and_refusals_alike(tmp_path: Path) -> None:
    """What a browser does: it asks ahead, then sends the token with the request itself."""
    page, chat = "https://chat.example", "/v1/chat/completions"
    ahead = {
        "Origin": page,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-hermes-session-id",
    }
    env = {"API_SERVER_CORS_ORIGINS": f"{page},http://localhost:3000"}
    said = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with (
        ScriptedServer.in_thread(lambda request: says("hello"), strict=False) as model,
        serving(tmp_path, model.url, env=env) as server,
        server.client(headers={}) as browser,
    ):
        payload = browser.options(chat, headers=ahead)
        assert (payload.status_code, payload.headers["access-control-max-age"]) == (204, "600")
        assert payload.headers["access-control-allow-origin"] == page
        assert "POST" in payload.headers["access-control-allow-methods"]
        allowed = payload.headers["access-control-allow-headers"].lower().split(", ")
        assert set(ahead["Access-Control-Request-Headers"].split(",")) <= set(allowed)
        refused = browser.options(chat, headers={**ahead, "Origin": "https://evil.example"})
        assert refused.status_code == 403
        assert not [name for name in refused.headers if name.startswith("access-control")]
        mine = {"Origin": page, **server.headers}
        with browser.stream("POST", chat, json=said, headers=mine) as stream:
            assert stream.headers["access-control-allow-origin"] == page
            exposed = stream.headers["access-control-expose-headers"]
            assert stream.headers["x-hermes-session-id"] and "X-Hermes-Session-Id" in exposed
            assert "hello" in "".join(stream.iter_text())
        for headers, body, status in ((mine, {}, 400), ({"Origin": page}, said, 401)):
            wrong = browser.post(chat, json=body, headers=headers)
            assert wrong.status_code == status
            assert wrong.headers["access-control-allow-origin"] == page
            assert wrong.headers["vary"] == "Origin"


def test_pages_of_a_named_origin_may_call(tmp_path: Path) -> None:
    page = "https://chat.example"
    with serving(tmp_path, "http://127.0.0.1:9", "--origin", page) as server:
        with server.client() as client:
            ahead = client.options(
                "/v1/models",
                headers={
                    "Origin": page,
                    "Access-Control-Request-Method": "GET",
                    "Authorization": "",
                },
            )
            assert ahead.status_code == 204
            assert "Authorization" in ahead.headers["access-control-allow-headers"]
            for path, headers in (("/v1/models", {}), ("/v1/models", {"Authorization": "no"})):
                done = client.get(path, headers={"Origin": page, **headers})
                assert done.headers["access-control-allow-origin"] == page
                assert done.headers["vary"] == "Origin"
            near = client.get("/v1/models", headers={"Origin": f"{page}.evil.example"})
            assert near.status_code == 403
        assert (server.home / "api_token").stat().st_mode & 0o077 == 0
        assert (server.home / "api_tokens.json").stat().st_mode & 0o077 == 0
        assert (server.home / "api.db").stat().st_mode & 0o077 == 0
        assert server.stop() == 0
        server.up()

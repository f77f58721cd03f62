"""A small Honcho server on loopback that takes version 3 of its interface literally: unknown paths,
fields, peers and sessions are refused as the real one refuses them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

NOW = "2026-05-01T12:00:00Z"
LEVELS = ("minimal", "low", "medium", "high", "max")


class Refusal(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Honcho:
    """What the server knows. `failures` are statuses that the next requests get instead."""

    def __init__(self, key: str = "hch-key") -> None:
        self.key = key
        self.workspaces: set[str] = set()
        self.peers: set[str] = set()
        self.sessions: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.cards: dict[tuple[str, str], list[str]] = {}
        self.conclusions: dict[str, dict[str, str]] = {}
        self.asked: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.failures: list[int] = []
        self.url = ""

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] != ["v3", "workspaces"]:
            raise Refusal(404, "Not Found")
        match method, parts[2:]:
            case "POST", []:
                _only(body, {"id", "metadata", "configuration"}, {"id"})
                self.workspaces.add(body["id"])
                return {"id": body["id"], "metadata": {}, "created_at": NOW}
            case _, [workspace, *_] if workspace not in self.workspaces:
                raise Refusal(404, f"Workspace {workspace} not found")
            case "POST", [workspace, "peers"]:
                _only(body, {"id", "metadata", "configuration"}, {"id"})
                self.peers.add(body["id"])
                return {"id": body["id"], "workspace_id": workspace, "created_at": NOW}
            case "POST", [workspace, "sessions"]:
                _only(body, {"id", "metadata", "configuration", "peers", "scopes"}, {"id"})
                for peer, config in (body.get("peers") or {}).items():
                    self._known(peer)
                    _only(config, {"observe_me", "observe_others"}, set())
                self.sessions[body["id"]] = body.get("peers") or {}
                return {"id": body["id"], "is_active": True, "workspace_id": workspace,
                        "created_at": NOW}  # fmt: skip
            case "POST", [workspace, "sessions", session, "messages"]:
                return self._add(workspace, session, body)
            case _, [_, "peers", peer, what]:
                self._known(peer)
                return self._of_peer(method, peer, what, query, body)
            case _, [_, "conclusions", *rest]:
                return self._conclusions(method, rest, query, body)
        raise Refusal(404, "Not Found")

    def _add(self, workspace: str, session: str, body: Any) -> Any:
        _only(body, {"messages"}, {"messages"})
        if session not in self.sessions:
            raise Refusal(404, f"Session {session} not found")
        if not 1 <= len(body["messages"]) <= 100:
            raise Refusal(422, "messages: between 1 and 100")
        for message in body["messages"]:
            allowed = {"content", "peer_id", "metadata", "configuration", "created_at"}
            _only(message, allowed, {"content", "peer_id"})
            if len(message["content"]) > 25_000:
                raise Refusal(422, "content: too long")
            self._known(message["peer_id"])
        kept = self.messages.setdefault(session, [])
        for message in body["messages"]:
            more = {"session_id": session, "workspace_id": workspace, "created_at": NOW}
            kept.append({"id": f"m{len(kept)}", "token_count": 1, **more, **message})
        return kept[-len(body["messages"]) :]

    def _of_peer(self, method: str, peer: str, what: str, query: dict[str, str], body: Any) -> Any:
        target = query.get("target", peer)
        match method, what:
            case "GET", "context":
                _only(query, {"target", "search_query", "search_top_k", "max_conclusions"}, set())
                known = [c["content"] for c in self.conclusions.values()]
                return {"peer_id": peer, "target_id": target,
                        "representation": "\n".join(known) or None,
                        "peer_card": self.cards.get((peer, target))}  # fmt: skip
            case "GET", "card":
                return {"peer_card": self.cards.get((peer, target))}
            case "PUT", "card":
                _only(body, {"peer_card"}, {"peer_card"})
                self.cards[peer, target] = body["peer_card"]
                return {"peer_card": body["peer_card"]}
            case "POST", "chat":
                allowed = {"query", "stream", "target", "session_id", "reasoning_level"}
                _only(body, allowed, {"query"})
                if body.get("reasoning_level", "low") not in LEVELS:
                    raise Refusal(422, "reasoning_level: not a level")
                self.asked.append(body)
                return {"content": f"They like tea ({body.get('reasoning_level')})."}
            case "POST", "search":
                _only(body, {"query", "filters", "limit"}, {"query"})
                found = [m for said in self.messages.values() for m in said]
                return [m for m in found if m["peer_id"] == peer and body["query"] in m["content"]]
        raise Refusal(404, "Not Found")

    def _conclusions(self, method: str, rest: list[str], query: dict[str, str], body: Any) -> Any:
        match method, rest:
            case "POST", []:
                made = []
                for one in body["conclusions"]:
                    fields = {"observer_id", "observed_id", "content", "session_id"}
                    _only(one, fields, {"observer_id", "observed_id", "content"})
                    id = f"c{len(self.conclusions) + 1}"
                    self.conclusions[id] = one
                    made.append({"id": id, **one, "created_at": NOW})
                return made
            case "POST", ["list"]:
                size, page = int(query.get("size", 50)), int(query.get("page", 1))
                every = [
                    {"id": id, "created_at": NOW, **one} for id, one in self.conclusions.items()
                ]
                pages = -(-len(every) // size)
                return {"items": every[(page - 1) * size : page * size], "page": page,
                        "pages": pages, "size": size, "total": len(every)}  # fmt: skip
            case "DELETE", [id]:
                if self.conclusions.pop(id, None) is None:
                    raise Refusal(404, "Conclusion not found")
                return None
        raise Refusal(404, "Not Found")

    def _known(self, peer: str) -> None:
        if peer not in self.peers:
            raise Refusal(404, f"Peer {peer} not found")


def _only(given: Any, allowed: set[str], needed: set[str]) -> None:
    if not isinstance(given, dict) or not needed <= set(given) <= allowed:
        raise Refusal(422, f"fields {sorted(given)} where {sorted(allowed)} are allowed")


@contextmanager
def serving(honcho: Honcho) -> Iterator[Honcho]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            place = urlsplit(self.path)
            honcho.requests.append(f"{self.command} {place.path}")
            query = {name: values[0] for name, values in parse_qs(place.query).items()}
            status, answer = 200, None
            try:
                if honcho.failures:
                    raise Refusal(honcho.failures.pop(0), "not now")
                if self.headers.get("authorization") != f"Bearer {honcho.key}":
                    raise Refusal(401, "Invalid key")
                body = json.loads(raw) if raw else None
                answer = honcho.answer(self.command, place.path, query, body)
                status = 200 if answer is not None else 204
            except Refusal as refusal:
                status, answer = refusal.status, {"detail": refusal.detail}
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    honcho.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield honcho
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

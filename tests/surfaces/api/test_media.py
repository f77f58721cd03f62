"""Pictures in answers and in messages, for clients on other machines."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.home import Home
from hermes.surfaces.api.encoding import MediaFilter, replace_paths, strip_images
from hermes.surfaces.api.tokens import TokenStore
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving, sse

PATH = "/v1/chat/completions"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


@pytest.fixture(scope="module")
def inlining(shared_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder: Path = tmp_path_factory.mktemp("inlining")
    settings = (
        "image_gen: {provider: local-test}\nsecurity: {allow_private_urls: true}\n"
        "api_server: {inline_media: true, ignore_client_tools: true}\n"
    )
    with serving(folder, shared_model.server.url, settings=settings) as server:
        yield server


@contextmanager
def pictures() -> Iterator[str]:
    class Picture(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/dot.png"
            self.send_response(200 if found else 404)
            self.send_header("content-length", str(len(PNG)))
            self.end_headers()
            self.wfile.write(PNG)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Picture)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def with_picture(url: str) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"messages": [{"role": "user", "content": parts}]}


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_a_file_is_called_by_its_name() -> None:
    assert replace_paths("look:\nMEDIA:/home/ann/a b.png\nnice") == "look:\na b.png\nnice"
    other = "MEDIA: is a word of ours\nso MEDIA:/x.png stays"
    assert replace_paths(other) == other


def test_pictures_in_a_text_are_left_out_when_it_comes_back() -> None:
    assert strip_images("a ![x.png](data:image/png;base64,AAAA) b") == "a x.png b"
    assert strip_images("a ![x.png](https://example.org/x.png) b") == (
        "a ![x.png](https://example.org/x.png) b"
    )


def test_drawn_pictures_stand_in_the_text_and_the_conversation_goes_on(
    inlining: Serving, model: Model
) -> None:
    def draws(request: Request) -> Step:
        last = request.body["messages"][-1]
        if last["role"] == "tool" or last["content"] != "draw a corgi":
            return says("Here it is.")
        return calls("image_generate", prompt="a corgi")

    model.rule = draws
    with inlining.client() as client:
        payload = client.post(PATH, json=said("draw a corgi")).json()
        text = payload["choices"][0]["message"]["content"]
        assert re.fullmatch(
            r"Here it is\.\n\n!\[[\w.-]+\]\(data:image/png;base64,[A-Za-z0-9+/=]+\)", text
        )
        more = [
            {"role": "user", "content": "draw a corgi"},
            {"role": "assistant", "content": text},
            {"role": "user", "content": "thanks"},
        ]
        again = client.post(PATH, json={"messages": more}).json()
    assert again["hermes"]["session_id"] == payload["hermes"]["session_id"]


def test_a_file_that_the_answer_names_is_shown_to_the_owner_only(
    inlining: Serving, model: Model
) -> None:
    picture = inlining.home.parent / "dot.png"
    picture.write_bytes(PNG)
    model.rule = lambda request: says(f"See\nMEDIA:{picture}")
    with inlining.client() as client:
        own = client.post(PATH, json=said("show it")).json()["choices"][0]["message"]["content"]
    assert own.startswith("See\n![dot.png](data:image/png;base64,")
    token = TokenStore(Home(inlining.home)).add("phone", ("chat",), 0.0)
    with inlining.client(headers={"Authorization": f"Bearer {token}"}) as client:
        payload = client.post(PATH, json=said("show it")).json()["choices"][0]["message"]["content"]
    assert payload == "See\ndot.png"


def test_a_picture_is_fetched_from_where_it_is(inlining: Serving, model: Model) -> None:
    with pictures() as at, inlining.client() as client:
        assert client.post(PATH, json=with_picture(f"{at}/dot.png")).is_success
        sent = model.server.requests[-1].body["messages"][-1]["content"]
        assert any(part["type"] == "image_url" for part in sent)
        missing = client.post(PATH, json=with_picture(f"{at}/none.png"))
    assert missing.status_code == 400
    assert missing.json()["error"]["code"] == "image_not_fetched"


def test_nothing_is_fetched_from_private_addresses(api: Serving, model: Model) -> None:
    with pictures() as at, api.client() as client:
        addresses = (f"{at}/dot.png", "http://169.254.169.254/latest", "file:///etc/passwd")
        for address in addresses:
            refused = client.post(PATH, json=with_picture(address))
            assert refused.status_code == 400, refused.text
            assert refused.json()["error"]["param"] == "messages"


def test_tools_of_clients_go_unused_where_the_settings_say_so(
    inlining: Serving, model: Model
) -> None:
    offered = {"type": "function", "function": {"name": "fly", "parameters": {"type": "object"}}}
    with inlining.client() as client:
        assert client.post(PATH, json=said("hi") | {"tools": [offered]}).is_success
    sent = model.server.requests[-1].body["tools"]
    assert "fly" not in {each["function"]["name"] for each in sent}


def streamed(client: Any, messages: list[dict[str, str]]) -> str:
    with client.stream("POST", PATH, json={"messages": messages, "stream": True}) as answer:
        chunks = [json.loads(data) for _, _, data in sse(answer.iter_lines()) if data != "[DONE]"]
    deltas = (chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"])
    return "".join(delta.get("content") or "" for delta in deltas)


def test_a_stream_shows_files_as_a_whole_answer_does(inlining: Serving, model: Model) -> None:
    picture = inlining.home.parent / "streamed.png"
    picture.write_bytes(PNG)
    model.rule = lambda request: says(f"See\nMEDIA:{picture}\nnice")
    asked = [{"role": "user", "content": "show it in a stream"}]
    with inlining.client() as client:
        text = streamed(client, asked)
        whole = client.post(PATH, json=said("show it")).json()["choices"][0]["message"]["content"]
    assert text == whole
    assert "![streamed.png](data:image/png;base64," in text


def test_pictures_that_were_drawn_come_with_the_stream_and_the_conversation_goes_on(
    inlining: Serving, model: Model
) -> None:
    def draws(request: Request) -> Step:
        last = request.body["messages"][-1]
        if last["role"] == "tool" or last["content"] != "draw a cat":
            return says("There.")
        return calls("image_generate", prompt="a cat")

    model.rule = draws
    asked = [{"role": "user", "content": "draw a cat"}]
    with inlining.client() as client:
        text = streamed(client, asked)
        assert re.fullmatch(r"There\.\n\n!\[[\w.-]+\]\(data:image/png;base64,\S+\)", text)
        before = len(client.get("/api/sessions", params={"limit": 500}).json()["sessions"])
        more = [*asked, {"role": "assistant", "content": text}, {"role": "user", "content": "ta"}]
        assert streamed(client, more) == "There."
        after = len(client.get("/api/sessions", params={"limit": 500}).json()["sessions"])
    assert after == before


TEXTS = st.lists(
    st.sampled_from(["MEDIA:", "MED", "IA:", "/a.png", "\n", " ", "hello", "M", "x/b.png"]),
    max_size=12,
)


@given(TEXTS)
def test_pieces_of_a_text_say_what_the_whole_text_says(pieces: list[str]) -> None:
    stream = MediaFilter(tuple, inline=False, any_file=False)
    payload = "".join([*(stream.feed(piece) for piece in pieces), stream.flush()])
    assert payload == replace_paths("".join(pieces))

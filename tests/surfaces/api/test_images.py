"""Pictures that the agent drew reach clients that cannot see its files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving, sse

PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def drawing(shared_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder: Path = tmp_path_factory.mktemp("drawing")
    settings = "image_gen: {provider: local-test}\n"
    with serving(folder, shared_model.server.url, settings=settings) as server:
        yield server


def draws(request: Request) -> Step:
    if request.body["messages"][-1]["role"] == "tool":
        return says("Here it is.")
    return calls("image_generate", prompt="a corgi")


def body(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "draw a corgi"}], **more}


def picture(images: list[dict[str, Any]]) -> bytes:
    assert len(images) == 1
    head, _, data = images[0]["image_url"]["url"].partition(",")
    assert (images[0]["type"], head) == ("image_url", "data:image/png;base64")
    return base64.b64decode(data)


def test_an_answer_carries_the_picture_and_says_where_it_is(drawing: Serving, model: Model) -> None:
    model.rule = draws
    with drawing.client() as client:
        payload = client.post(PATH, json=body()).json()
    message = payload["choices"][0]["message"]
    assert message["content"] == "Here it is."
    path = Path(payload["hermes"]["images"][0])
    assert path.parent == drawing.home / "cache" / "images"
    assert picture(message["images"]) == path.read_bytes()


def test_a_stream_carries_it_in_its_last_chunk(drawing: Serving, model: Model) -> None:
    model.rule = draws
    with (
        drawing.client() as client,
        client.stream("POST", PATH, json=body(stream=True)) as answer,
    ):
        chunks = [json.loads(data) for _, _, data in sse(answer.iter_lines()) if data != "[DONE]"]
    last = next(each for each in chunks if "images" in each["choices"][0]["delta"])
    assert picture(last["choices"][0]["delta"]["images"]).startswith(b"\x89PNG")
    assert last["choices"][0]["finish_reason"] == "stop"


def test_answers_without_pictures_say_nothing_of_them(drawing: Serving, model: Model) -> None:
    with drawing.client() as client:
        payload = client.post(PATH, json=body()).json()
    assert "images" not in payload["choices"][0]["message"]
    assert "images" not in payload["hermes"]


def test_a_response_carries_the_picture_also_when_it_is_read_again(
    drawing: Serving, model: Model
) -> None:
    model.rule = draws
    with drawing.client() as client:
        payload = client.post("/v1/responses", json={"input": "draw a corgi"}).json()
        again = client.get(f"/v1/responses/{payload['id']}").json()
        more = [*payload["output"], {"role": "user", "content": "thanks"}]
        assert client.post("/v1/responses", json={"input": more}).is_success
    [item] = [each for each in payload["output"] if each["type"] == "image_generation_call"]
    assert base64.b64decode(item["result"]).startswith(b"\x89PNG")
    assert (item["status"], item["output_format"]) == ("completed", "png")
    assert "hermes_place" not in item
    assert again["output"] == payload["output"]


def test_a_streamed_response_carries_it_as_an_item(drawing: Serving, model: Model) -> None:
    model.rule = draws
    asked = {"input": "draw a corgi", "stream": True}
    with drawing.client() as client, client.stream("POST", "/v1/responses", json=asked) as answer:
        events = [json.loads(data) for _, _, data in sse(answer.iter_lines())]
    done = [
        each["item"]
        for each in events
        if each["type"] == "response.output_item.done"
        and each["item"]["type"] == "image_generation_call"
    ]
    whole = events[-1]["response"]["output"]
    assert done == [each for each in whole if each["type"] == "image_generation_call"]
    assert base64.b64decode(done[0]["result"]).startswith(b"\x89PNG")

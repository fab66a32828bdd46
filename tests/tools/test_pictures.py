"""D4: pictures of tools are known in every shape, and base64 is never text for the model."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.units import Image
from runner.tools.base64_text import runs
from runner.tools.pictures import Pictures
from runner.tools.results import ErrorCode, Rendered, Renderer
from tests.tools.offers import entry

NOISE = random.Random(7).randbytes(6_000)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + NOISE + b"\0\0\0\0IEND\xaeB`\x82").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + NOISE + b"\xff\xd9").decode()
GIF = base64.b64encode(b"GIF89a" + NOISE + b";").decode()
WEBP = base64.b64encode(b"RIFF\0\0\0\0WEBP" + NOISE).decode()
OTHER = base64.b64encode(b"%PDF-1.7" + NOISE).decode()
URL = f"data:image/png;base64,{PNG}"
ADDRESS = "https://pics.example/a.png"
NOTE = "[image 1, shown after the results]"


def _render(value: object, kind: str = "plugin") -> Rendered:
    return Renderer(20_000).render(entry("lookup", kind), value)


def _sdk(kind: str, **content: Any) -> dict[str, Any]:
    empty = dict.fromkeys(["text", "image_url", "image_base64", "file_url", "file_base64", "file_name"])
    return {"type": kind, **empty, **content}


SHAPES: dict[str, Any] = {
    "an element of the SDK": _sdk("image_base64", image_base64=PNG),
    "an element with a data URL": _sdk("image_url", image_url={"url": URL}),
    "an element without its empty fields": {"type": "image_base64", "image_base64": PNG},
    "MCP": {"type": "image", "data": PNG, "mimeType": "image/png"},
    "MCP with notes": {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": None, "_meta": None},
    "Anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    "OpenAI": {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    "OpenAI's responses": {"type": "input_image", "image_url": URL},
    "Gemini": {"inlineData": {"mimeType": "image/png", "data": PNG}},
    "an MCP resource": {"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": PNG}},
    "a generated picture": {"created": 1, "data": [{"b64_json": PNG}]},
    "a picture of a message": {"type": "Image", "url": ADDRESS, "base64": URL, "path": None},
    "a data URL": URL,
    "a data URL without a type": f"data:;base64,{PNG}",
    "a data URL in capitals": URL.replace("data:image/png;base64", "DATA:IMAGE/PNG;BASE64"),
    "a field of its own name": {"type": "image", "mime_type": "image/png", "picture": PNG[:4_000]},
    "a data URL in a field": {"caption": "sales", "chart": URL},
    "the field image_base64": {"image_base64": PNG, "width": 3},
    "the field image_url": {"image_url": URL, "width": 3},
    "the object image_url": {"image_url": {"url": URL}},
    "a bare PNG": PNG,
    "a bare JPEG in a field": {"x": JPEG},
    "a bare GIF in a list": {"frames": [GIF]},
    "a bare WebP": [WEBP],
    "a broken one in a field for pictures": {"screenshot": PNG[:4_000]},
    "lines of 76 characters": {"ok": True, "stdout": base64.encodebytes(base64.b64decode(JPEG)).decode()},
    "Markdown": f"Here it is: ![chart]({URL}) as wished",
    "HTML": f'<img src="{URL}">',
    "JSON text": json.dumps({"chart": {"image_base64": PNG}}),
    "JSON text with an address": json.dumps([{"type": "image_url", "image_url": {"url": ADDRESS}}]),
    "JSON text as PHP writes it": '{"x": "' + JPEG.replace("/", "\\/") + '"}',
    "the text of a Python object": repr({"image_base64": PNG}),
    "JSON text in an element": [_sdk("text", text=json.dumps({"x": PNG}))],
    "an address": _sdk("image_url", image_url={"url": ADDRESS}),
}
PLACES: dict[str, Any] = {
    "alone": lambda shape: shape,
    "in a list": lambda shape: [shape],
    "as content": lambda shape: {"content": [shape], "isError": False},
    "deep in a result": lambda shape: {"ok": True, "rows": [{"n": 1}, {"parts": {"it": [shape, "a"]}}]},
    "beside a text": lambda shape: [_sdk("text", text="hello"), shape],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_D4_a_picture_is_seen_in_whatever_shape_and_wherever_it_stands(shape: str, place: str) -> None:
    rendered = _render(PLACES[place](SHAPES[shape]))
    assert len(rendered.images) == 1
    assert NOTE in rendered.body
    for text in (rendered.text, json.dumps(dict(rendered.event_payload))):
        assert not any(payload[100:140] in text.replace("\\/", "/") for payload in (PNG, JPEG, GIF, WEBP))
        assert len(text) < 1_000
    (image,) = rendered.images
    assert image.url == ADDRESS or (image.base64 or "").rpartition(",")[2][:4_000] in (
        picture[:4_000] for picture in (PNG, JPEG, GIF, WEBP)
    )


def test_D4_what_is_said_to_be_a_picture_is_one_whatever_its_bytes() -> None:
    for value in (
        {"a": "data:image/heic;base64,QUJD"},
        {"image_base64": "QUJD"},
        {"mimeType": "image/x", "data": "QUJD"},
    ):
        assert len(_render(value).images) == 1
    assert _render("data:image/svg+xml;base64,QUJD").images == ()
    assert _render({"type": "image", "alt": "cat", "title": "Cat"}).images == ()


@pytest.mark.parametrize("what", [OTHER, URL], ids=["a run", "a data URL"])
def test_D4_what_begins_at_the_end_of_a_window_of_the_search_is_found_whole(what: str) -> None:
    for before in range(49_600, 50_040, 11):
        (run,) = runs(" " * before + what + " end")
        assert (run.start, run.end) == (before, before + len(what))


def test_D4_what_stands_beside_a_picture_is_kept() -> None:
    assert _render({"caption": "sales", "chart": URL}).body == f'{{"caption":"sales","chart":"{NOTE}"}}'
    assert _render(f"before ![]({URL}) after").body == f"before ![]({NOTE}) after"
    elements = {"content": [{"type": "text", "text": "a"}, SHAPES["MCP"], {"type": "text", "text": "b"}]}
    assert _render(elements).body == f"a\n{NOTE}\nb"
    assert _render({"type": "text", "text": "just words"}).body == "just words"


@pytest.mark.parametrize(
    "value",
    [
        OTHER,
        {"file": OTHER},
        {"x": OTHER},
        {"x": OTHER.replace("+", "-").replace("/", "_")},
        {"x": [{"y": [OTHER]}]},
        f"The report: {OTHER}.",
        f"data:application/pdf;base64,{OTHER}",
        {"mimeType": "application/pdf", "blob": "QUJD" * 100},
        {"image_base64": None, "data": "QUJD" * 100},
        {"ok": True, "content": "QUJD" * 100, "encoding": "base64"},
        {"type": "image", "mimeType": "image/svg+xml", "data": OTHER},
        {"cut": JPEG[:3_000]},
        json.dumps({"x": OTHER}),
        repr({"x": OTHER}),
        base64.encodebytes(NOISE).decode(),
        {"out": base64.encodebytes(NOISE).decode().replace("\n", "\r\n")},
        [_sdk("file_base64", file_base64=OTHER, file_name="a.pdf")],
        [_sdk("text", text=OTHER)],
    ],
)
def test_D4_base64_of_any_other_kind_is_a_short_note(value: object) -> None:
    rendered = _render(value)
    assert rendered.images == ()
    assert "not shown]" in rendered.body
    assert len(rendered.text) < 500
    assert len(json.dumps(dict(rendered.event_payload))) < 500


@pytest.mark.parametrize(
    "text",
    [
        "x" * 9_000,
        "0123456789" * 500,
        "deadbeef01" * 500,
        "ACGT" * 1_000,
        "-" * 3_000,
        "一二三" * 1_000,
        "/usr/lib/Python3/site" * 60,
        "aGVsbG8=",
        "ssh-rsa AAAAB3NzaC1yc2E" + OTHER[:360],
        "https://files.example/get?token=" + OTHER[:900].replace("+", "A").replace("/", "b"),
        "\n".join(OTHER[at : at + 88] for at in range(0, 4_000, 88)),
        '{"data": [1, 2], "image": "a.png", "image_url": "https://pics.example/a.png"}',
    ],
)
def test_D4_what_only_looks_like_base64_stays_as_it_is(text: str) -> None:
    assert _render(text).body == text
    assert _render(text).images == ()
    assert json.loads(_render({"text": text}).body) == {"text": text}


def test_D4_results_of_a_search_keep_the_addresses_of_their_pictures() -> None:
    value = {"results": [{"title": "a", "image_url": ADDRESS, "thumbnail": ADDRESS}]}
    assert (json.loads(_render(value).body), _render(value).images) == (value, ())


def test_D4_number_and_size_of_pictures_are_bounded_in_every_shape() -> None:
    many = _render({"images": [URL] * 20})
    assert len(many.images) == 8
    assert many.body.count("too many or too large") == 12
    large = _render({"image_base64": "A" * 7_000_000})
    assert (large.images, "left out" in large.body) == ((), True)
    together = _render([SHAPES["MCP"] | {"data": "A" * 3_000_000}] * 4)
    assert len(together.images) == 2


def test_D4_a_picture_in_the_words_of_a_failure_is_no_text_either() -> None:
    failed = Renderer(20_000).error(ErrorCode.FAILED, f"no: {URL}", said_by="lookup")
    assert (len(failed.images), PNG[:40] in failed.text, NOTE in failed.text) == (1, False, True)


def test_D4_an_address_inside_a_data_url_that_is_small_is_no_reference() -> None:
    small = "data:image/png;base64," + PNG[:1_000]
    rendered = Renderer(2_000).render(entry("lookup"), {"image_url": small, "text": "word " * 9_000})
    assert PNG[:40] not in rendered.text
    assert rendered.truncated


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def _places(draw: st.DrawFn) -> Any:
    """A picture somewhere in a value."""
    value: Any = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    for _ in range(draw(st.integers(0, 4))):
        around = draw(st.sampled_from(["list", "object", "text"]))
        if around == "list":
            value = [*draw(st.lists(_json, max_size=2)), value, *draw(st.lists(_json, max_size=2))]
        elif around == "object":
            value = {**draw(st.dictionaries(st.text(max_size=5), _json, max_size=2)), draw(st.text(max_size=5)): value}
        else:
            value = json.dumps({"image": value})
    return value


@given(_places())
def test_D4_wherever_a_picture_is_nested_it_is_seen_once_and_its_base64_is_no_text(value: Any) -> None:
    rendered = _render(value)
    assert len(rendered.images) == 1
    assert NOTE in rendered.body
    assert not any(payload[200:260] in rendered.body for payload in (PNG, JPEG, GIF, WEBP))


@given(_json)
def test_D4_a_value_without_pictures_is_the_same_object_afterwards(value: Any) -> None:
    pictures = Pictures()
    assert pictures.taken_from(value) is value
    assert pictures.images == []


@given(st.text('aB3/=\\\n "data:;,image/png64', max_size=300) | st.text(max_size=50), st.integers(0, 60_000))
def test_D4_runs_are_found_wherever_the_windows_of_the_search_end(text: str, before: int) -> None:
    long = text + " " * before + f'"{OTHER}"' + text
    found = [run for run in runs(long) if run.payload == OTHER]
    assert [long[run.start : run.end] for run in found] == [OTHER]


def test_D4_values_without_end_are_walked_to_an_end() -> None:
    wide: list[Any] = []
    wide.extend([wide, wide])
    assert Pictures().taken_from(wide) is wide
    deep: Any = URL
    for _ in range(500):
        deep = [deep]
    assert "iVBOR" not in _render(deep).body
    assert Image(base64=URL) not in _render(deep).images

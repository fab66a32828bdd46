"""Results that are lists of content elements, as MCP tools give them (D4)."""

from __future__ import annotations

from dataclasses import dataclass

from runner.conversation.units import Image

MAX_IMAGES = 8
_IMAGE_CHARACTERS = 6_000_000
_TOTAL_IMAGE_CHARACTERS = 8_000_000
_FIELDS = frozenset({"type", "text", "image_url", "image_base64", "file_url", "file_base64", "file_name"})
_CONTENT_FIELD = {
    "text": "text",
    "image_url": "image_url",
    "image_base64": "image_base64",
    "file_url": "file_url",
    "file_base64": "file_base64",
}
_URL_CHARACTERS = 2_048


@dataclass(frozen=True, slots=True)
class Content:
    """The text of the elements in their order, a line in words for each that is none, and the pictures."""

    text: str
    images: tuple[Image, ...] = ()


def is_content(value: object) -> bool:
    """Whether a result is a list of content elements; an empty list is not."""
    return isinstance(value, list) and bool(value) and all(_is_element(item) for item in value)


def _is_element(item: object) -> bool:
    return isinstance(item, dict) and item.keys() <= _FIELDS and item.get("type") in _CONTENT_FIELD


def read_content(elements: list[dict[str, object]]) -> Content:
    """Reads a list for which `is_content` holds. Hollow elements and pictures without room become words."""
    pictures = _Pictures()
    return Content("\n".join(_words(element, pictures) for element in elements), tuple(pictures.images))


class _Pictures:
    def __init__(self) -> None:
        self.images: list[Image] = []
        self._room = _TOTAL_IMAGE_CHARACTERS

    def add(self, image: Image, size: int) -> str:
        if len(self.images) >= MAX_IMAGES or size > min(_IMAGE_CHARACTERS, self._room):
            return "[an image was left out: too many or too large]"
        self._room -= size
        self.images.append(image)
        return f"[image {len(self.images)}, shown after the results]"


def _words(element: dict[str, object], pictures: _Pictures) -> str:
    kind = str(element["type"])
    content = element.get(_CONTENT_FIELD[kind])
    if kind == "image_url" and isinstance(content, dict):
        content = content.get("url")
    if not isinstance(content, str) or (not content and kind != "text"):
        return f"[an empty {kind.partition('_')[0]} element]"
    match kind:
        case "text":
            return content
        case "image_base64":
            return pictures.add(Image(base64=content), len(content))
        case "image_url":
            return _image_url(content, pictures)
        case "file_url":
            return f"[file {_file_name(element)}: {content[:_URL_CHARACTERS]}]"
        case _:
            return f"[file {_file_name(element)}, {len(content) * 3 // 4:,} bytes, not shown]"


def _image_url(url: str, pictures: _Pictures) -> str:
    if url.startswith("data:"):
        return pictures.add(Image(base64=url), len(url))
    if url.startswith(("http://", "https://")) and len(url) <= _URL_CHARACTERS:
        return pictures.add(Image(url=url), len(url))
    return "[an image with an address that cannot be used]"


def _file_name(element: dict[str, object]) -> str:
    name = element.get("file_name")
    return name[:200] if isinstance(name, str) and name else "without a name"

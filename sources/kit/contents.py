"""Read the content of a message: a text, or blocks with texts, images and other files. Pure."""

import re
from base64 import b64decode
from collections.abc import Mapping
from itertools import chain
from typing import Any

from registry.domain import image_type
from sources.kit.loose_json import Record, compact, first_text, mapping, objects, storable, string, text_at

MAX_IMAGE_BYTES = 5 * 2**20  # of one image: the limit of Anthropic's API


def content_text(content: object) -> str:
    """Return the text of a content: a string, a list of blocks, or another value as JSON. Images become their names."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_block_text, content)))
    return "" if content is None else compact(storable(content))


def _block_text(block: object) -> str:
    given = mapping(block)
    if isinstance(given.get("text"), str):
        return string(given["text"])
    resource = mapping(given.get("resource"))  # of an MCP server
    if text := string(resource.get("text")):
        return text
    name = attachment_name(given) or string(resource.get("uri"))
    return f"[{name}]" if name else content_text(block if isinstance(block, str) else given or None)


_MEDIA_KIND = re.compile("(?:input_|local_)?(image|audio|video|document|file)(?:_url|Url)?")


def attachment_name(block: Mapping[str, Any]) -> str:
    """Return the name of an image, a recording or a document, else its media type; empty if the block is none."""
    if file := _gemini_file(block):
        return first_text(file, "displayName", "fileUri", "mimeType") or "file"
    kind = _MEDIA_KIND.fullmatch(string(block.get("type")))
    if kind is None:
        return ""
    source = mapping(block.get("source"))
    names = (block.get(key) for key in ("title", "filename", "name", "path"))
    return next(filter(None, map(string, chain(names, (source.get("media_type"),)))), kind[1])


def _gemini_file(block: Mapping[str, Any]) -> Record:
    return mapping(block.get("inlineData")) or mapping(block.get("fileData"))


def image_in(block: Mapping[str, Any]) -> bytes | None:
    """Return the image in a block; None if it is elsewhere, too large, or of another format than the usual ones."""
    url = string(block.get("image_url")) or text_at(block, "image_url", "url")
    given = text_at(block, "source", "data"), string(_gemini_file(block).get("data")), url.partition(";base64,")[2]
    encoded = next(filter(None, given), "")
    if len(encoded) > MAX_IMAGE_BYTES * 4 / 3:
        return None
    try:
        content = b64decode(encoded)
    except ValueError:
        return None
    return content if image_type(content) else None


def blocks_of(content: object) -> list[Record]:
    """Return the blocks of a content; a plain text is one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def texts_in(content: object) -> list[str]:
    """Return the texts of a content's blocks."""
    return [text for block in blocks_of(content) if (text := string(block.get("text")))]


def attachments_in(content: object) -> list[str]:
    """Return the names of the pictures and documents in a content."""
    return list(filter(None, map(attachment_name, objects(content))))

"""A tiny ONNX sentence model, built byte by byte, because weights cannot be downloaded without a network.

It maps each word to its vector of the toy endpoint; with `pools`, it also returns the mean of the words.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

from tests.embedding_server import CONCEPTS, toy_vector

WORDS = ("refuses", "fence", "paint", "green", "upgrade", "got", "after", "bread", "trip")
FLOAT, INT64, INTS = 1, 7, 7


def make_tiny_onnx(folder: Path, *, pools: bool = False) -> Path:
    """Save a model and its tokenizer, and return their folder."""
    folder.mkdir(parents=True)
    words = ["[UNK]", *(word for names in CONCEPTS for word in names), *WORDS]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    vectors = np.array([toy_vector(word) for word in words], np.float32)
    vectors[0] = 0  # unknown words
    (folder / "model.onnx").write_bytes(_model(vectors, pools=pools))
    return folder


def _model(vectors: np.ndarray, *, pools: bool) -> bytes:
    """Return an ONNX file: a look-up, and with `pools` the mean of the words; the hidden states are zeros then.

    The numbers are field numbers of ONNX's protocol buffers.
    """
    states = "states" if pools else "last_hidden_state"
    look_up = _text(1, "words") + _text(1, "input_ids") + _text(2, states) + _text(4, "Gather")
    table = b"".join(_number(1, size) for size in vectors.shape) + _number(2, FLOAT)
    table += _text(8, "words") + _bytes(9, vectors.tobytes())
    graph = _bytes(1, look_up) + _text(2, "tiny") + _bytes(5, table)
    if pools:
        none = _text(1, states) + _text(1, states) + _text(2, "last_hidden_state") + _text(4, "Sub")
        mean = _text(1, states) + _text(2, "sentence_embedding") + _text(4, "ReduceMean")
        graph += _bytes(1, none) + _bytes(1, mean + _bytes(5, _text(1, "axes") + _number(8, 1) + _number(20, INTS)))
    graph += _bytes(11, _value("input_ids", INT64, 2)) + _bytes(11, _value("attention_mask", INT64, 2))
    graph += _bytes(12, _value("last_hidden_state", FLOAT, 3))
    if pools:
        graph += _bytes(12, _value("sentence_embedding", FLOAT, 2))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, 13))


def _value(name: str, kind: int, dimensions: int) -> bytes:
    shape = b"".join(_bytes(1, _text(2, f"{name} {place}")) for place in range(dimensions))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])

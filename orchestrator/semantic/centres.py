"""Subtract from a vector what comes from its text's language alone.

A small multilingual model calls texts of one language similar, whatever they say. From each vector the mean of its kind
(question or message) and language is subtracted, weighted by the shares of Hangul and Latin letters. The means were
fitted on the sets in benchmarks/retrieval.
"""

import re
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_HANGUL, _LATIN = re.compile("[가-힣ㄱ-ㅎ]"), re.compile("[A-Za-z]")


def shares(text: str) -> tuple[float, float]:
    """Return how much of a text is Hangul, and how much is not."""
    hangul = 2.5 * len(_HANGUL.findall(text))  # a syllable counts as so many letters
    letters = hangul + len(_LATIN.findall(text))
    share = hangul / letters if letters else 0.5
    return share, 1.0 - share


def centres_of(package: str) -> tuple[Floats, Floats]:
    """Return the means of questions and of messages, each in Hangul and in Latin."""
    with as_file(files(__package__).joinpath("centres.npz")) as path, np.load(path) as file:
        queries, messages = file[package].astype(np.float32)
    return queries, messages


def centred(vectors: Floats, texts: Sequence[str], means: Floats) -> Floats:
    """Return the vectors without the means of their languages, each of length 1."""
    found: Floats = vectors - np.array([shares(text) for text in texts], np.float32) @ means
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found

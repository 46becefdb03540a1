"""Remove the language bias from vectors.

A small multilingual model finds all texts of one language similar. The mean vector of the kind (question or message)
and language is subtracted, weighted by the shares of Hangul and Latin letters. The means were fitted on the sets in
benchmarks/retrieval.
"""

import re
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_HANGUL, _LATIN = re.compile("[가-힣ㄱ-ㅎ]"), re.compile("[A-Za-z]")


def shares(text: str) -> tuple[float, float]:
    """Return the shares of Hangul and of other letters in a text; they sum to 1."""
    hangul = 2.5 * len(_HANGUL.findall(text))  # a syllable counts as 2.5 letters
    letters = hangul + len(_LATIN.findall(text))
    share = hangul / letters if letters else 0.5
    return share, 1.0 - share


def centres_of(package: str) -> tuple[Floats, Floats]:
    """Return the means of questions and of messages, each in Hangul and in Latin."""
    with as_file(files(__package__).joinpath("centres.npz")) as path, np.load(path) as file:
        queries, messages = file[package].astype(np.float32)
    return queries, messages


def centred(vectors: Floats, texts: Sequence[str], means: Floats) -> Floats:
    """Subtract the means of the languages from the vectors, and normalise them to length 1."""
    found: Floats = vectors - np.array([shares(text) for text in texts], np.float32) @ means
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found

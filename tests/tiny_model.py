"""A real model2vec model of a few words, made in the test: no weights can be had without a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

from tests.embedding_server import CONCEPTS, toy_vector

WORDS = ("refuses", "fence", "paint", "green", "upgrade", "got", "after", "bread", "trip")


def make_tiny_model(folder: Path) -> str:
    """Save a model whose vectors are the toy endpoint's; its address."""
    words = all_words()
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.array([toy_vector(word) for word in words], np.float32)
    StaticModel(vectors, tokenizer).save_pretrained(folder)
    return str(folder)


def all_words() -> list[str]:
    """The words it knows, the first standing for all others."""
    return ["[UNK]", *(word for names in CONCEPTS for word in names), *WORDS]

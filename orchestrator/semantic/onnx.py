"""Run an ONNX sentence model with its tokenizer; the vector is the mean of the tokens' last hidden states."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer


class OnnxModel:
    """A loaded model. If its graph has the output `sentence_embedding`, that is used instead of the mean."""

    def __init__(self, model: Path, tokenizer: Path) -> None:
        options = SessionOptions()
        options.intra_op_num_threads = 1
        self._session = InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._input_names = {one.name for one in self._session.get_inputs()}
        given = [one.name for one in self._session.get_outputs()]
        self._output = next((name for name in given if name == "sentence_embedding"), given[0])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(512)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        longest = max((len(self._tokenizer.encode(text).ids) for text in texts), default=1)
        size = max(2_048 // longest, 1)
        return np.concatenate([self._run(texts[start : start + size]) for start in range(0, len(texts), size)])

    def _run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode_batch(list(texts))
        inputs = {
            "input_ids": np.array([one.ids for one in encoded], np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], np.int64),
        }
        given = {name: values for name, values in inputs.items() if name in self._input_names}
        states = np.asarray(self._session.run([self._output], given)[0], np.float32)
        if states.ndim == 2:
            return states
        weights = inputs["attention_mask"].astype(np.float32)[..., None]
        return np.asarray((states * weights).sum(axis=1) / weights.sum(axis=1), np.float32)

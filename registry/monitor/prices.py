"""Prices of models per million tokens: `prices.toml` in this folder, then the user's own in the registry's folder."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from registry.errors import InvalidRequest

_VARIANT = re.compile(r"(?:[-@]20\d\d-?\d\d-?\d\d|-v\d+:\d+|-(?:minimal|low|medium|high|xhigh|thinking))+$")


class Price(BaseModel):
    """Dollars for a million tokens of some models, from a day on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...]
    since: date
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(None, ge=0)
    cache_write: float | None = Field(None, ge=0)

    @cached_property
    def rates(self) -> Mapping[str, float]:
        rates = {"input": self.input, "output": self.output}
        rates["cache_read"] = self.input if self.cache_read is None else self.cache_read
        rates["cache_write"] = self.input if self.cache_write is None else self.cache_write
        return rates

    def dollars(self, tokens: Mapping[str, int]) -> float:
        return sum(tokens[kind] * rate for kind, rate in self.rates.items()) / 1_000_000


@dataclass(slots=True)
class _PriceSettings:
    """The folder with the user's own prices, and whether costs are shown, in this process."""

    home: Path | None = None
    are_shown: bool = True


_settings = _PriceSettings()


def use_prices(home: Path, *, are_shown: bool) -> None:
    """Set the folder with the user's own prices, and whether costs are shown."""
    _settings.home, _settings.are_shown = home, are_shown
    _prices.cache_clear()
    price_of.cache_clear()


def are_shown() -> bool:
    return _settings.are_shown


@cache
def price_of(model: str, day: date) -> Price | None:
    """Return the price of a model on a day, before its first price the first one; None if it has no price."""
    name = _VARIANT.sub("", model.lower().rpartition("/")[2])
    fitting = [price for price in _prices()[0] if any(fnmatchcase(name, pattern) for pattern in price.models)]
    return next((price for price in reversed(fitting) if price.since <= day), next(iter(fitting), None))


def check_prices() -> None:
    """Raise InvalidRequest if the user's own prices cannot be read, so that only the built-in ones are used."""
    if problem := _prices()[1]:
        raise InvalidRequest("prices.toml could not be read.", problem)


@cache
def _prices() -> tuple[tuple[Price, ...], str]:
    """Return all prices, and the reason if the user's own cannot be read, else ""."""
    known = _read(Path(__file__).with_suffix(".toml"))
    own = _settings.home / "prices.toml" if _settings.home else None
    if own is None or not own.is_file():
        return known, ""
    try:
        return known + _read(own), ""
    except ValidationError as exc:
        wrong = exc.errors()[0]
        return known, f"{own}: {wrong['loc'][0]}: {wrong['msg']}"
    except (OSError, ValueError, TypeError, AttributeError) as exc:
        return known, f"{own}: {exc}"


def _read(file: Path) -> tuple[Price, ...]:
    given: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(Price(**price) for price in given.get("price", []))


def in_dollars(cost: float | None) -> str:
    """Format a cost; "–" if it is unknown."""
    if cost is None:
        return "–"
    return f"${cost:,.2f}" if cost >= 0.01 or not cost else "<$0.01"

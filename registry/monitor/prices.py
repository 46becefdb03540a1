"""Prices of models per million tokens: `prices.toml` beside this file, then the user's own in the registry's folder."""

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

_NAMED = re.compile(r"(?:[-@]20\d\d-?\d\d-?\d\d|-v\d+:\d+|-(?:minimal|low|medium|high|xhigh|thinking))+$")


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
class _Used:
    """The settings of this process: the folder with the user's own prices, and whether costs are shown."""

    home: Path | None = None
    are_on: bool = True


_used = _Used()


def use_prices(home: Path, *, are_on: bool) -> None:
    """Take the user's own prices from a folder, or show no costs."""
    _used.home, _used.are_on = home, are_on
    _prices.cache_clear()
    price_of.cache_clear()


def are_on() -> bool:
    return _used.are_on


@cache
def price_of(model: str, day: date) -> Price | None:
    """Return the price of a model on a day; on days before its first price that one. None: it has none."""
    name = _NAMED.sub("", model.lower().rpartition("/")[2])
    fitting = [price for price in _prices()[0] if any(fnmatchcase(name, pattern) for pattern in price.models)]
    return next((price for price in reversed(fitting) if price.since <= day), next(iter(fitting), None))


def check_prices() -> None:
    """Raise InvalidRequest if the user's own prices cannot be read; until then the known ones hold."""
    if problem := _prices()[1]:
        raise InvalidRequest("prices.toml could not be read.", problem)


@cache
def _prices() -> tuple[tuple[Price, ...], str]:
    """Return all prices, and why the user's own cannot be read."""
    known = _read(Path(__file__).with_suffix(".toml"))
    own = _used.home / "prices.toml" if _used.home else None
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
    """Format a cost; "–" where nothing has a price."""
    if cost is None:
        return "–"
    return f"${cost:,.2f}" if cost >= 0.01 or not cost else "<$0.01"

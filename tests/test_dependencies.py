"""The product declares every package that it imports."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
PACKAGES: list[str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
USED_WITHOUT_AN_IMPORT = {
    "psycopg": "SQLAlchemy opens PostgreSQL with it",
    "python-multipart": "starlette reads forms with it",
    "tzdata": "zoneinfo reads it where the system has no time zones",
    "pystemmer": "snowballstemmer stems with it",
}


IMPORT = re.compile(r"^ *(?:from (\w+)[\w.]* import|import (\w+))", re.MULTILINE)


@cache
def imports() -> dict[str, str]:
    """Return the product's third-party imports (top-level names), each with one file that has it."""
    return {
        name: str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for found in IMPORT.findall(file.read_text(encoding="utf-8"))
        for name in found
        if name and name not in sys.stdlib_module_names and name not in PACKAGES
    }


@cache
def providers() -> dict[str, set[str]]:
    """Return the distributions that can provide each import; a namespace package has several."""
    installed = packages_distributions()
    return {name: set(map(canonicalize_name, installed.get(name, [name]))) for name in imports()}


def declared() -> dict[str, Requirement]:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    requirements = [Requirement(line) for lines in lists for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def test_every_imported_package_is_declared() -> None:
    undeclared = {name for name, possible in providers().items() if not possible & declared().keys()}
    assert {name: imports()[name] for name in undeclared} == {}


def test_every_declared_package_is_imported() -> None:
    imported = set().union(*providers().values())
    assert declared().keys() - imported == USED_WITHOUT_AN_IMPORT.keys()


def test_each_dependency_has_its_reason_written_down() -> None:
    decision = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    reasoned = set(re.findall(r"^\| ([\w-]+)", decision, re.MULTILINE))
    assert declared().keys() - reasoned == set()


def private_names(module: ast.Module) -> Iterator[str]:
    """Yield the private names that a module uses of other modules and objects."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            yield from (name.name for name in node.names if is_private(name.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.attr


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def inherited_from_the_sdk() -> set[str]:
    """Return the SDK's private names that its subclasses can reach through `self`."""
    from mcp.server import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus

    instances = (Server("any"), InMemorySubscriptionBus())
    return {name for instance in instances for name in dir(instance) if is_private(name)}


def test_no_private_name_of_the_mcp_sdk_is_used() -> None:
    for file in sorted((ROOT / "mcp_server").rglob("*.py")):
        module = ast.parse(file.read_text(encoding="utf-8"))
        own = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and is_own(node.value)}
        assert set(private_names(module)) | (own & inherited_from_the_sdk()) == set()

"""The built wheel and the container image, outside this checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from email import message_from_string
from email.message import Message
from importlib.metadata import distribution, version
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conformance.servers import free_port, wait_for
from tests.image import ROOT, command_of, ignore_rules, is_sent, sent_files, settings_of_the_image

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
VERSIONED = [
    ROOT / "deploy" / "kubernetes" / "Chart.yaml",
    ROOT / "integrations" / "claude-code" / ".claude-plugin" / "plugin.json",
    ROOT / "integrations" / "claude-desktop" / "manifest.json",
    ROOT / "integrations" / "claude-desktop" / "pyproject.toml",
    ROOT / "integrations" / "npm" / "package.json",
    ROOT / "integrations" / "server.json",
]

VERSION = re.compile(r'(?:"version": |^version(?: =|:) )"([^"]+)"', re.MULTILINE)

pytestmark = pytest.mark.timeout(120)


def run(*command: str | Path, **options: str) -> str:
    """Run a command outside this checkout (or in `cwd`), and return its output. It must succeed."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, check=True, env=clean, stdout=subprocess.PIPE, text=True, cwd=options.get("cwd", "/")
    ).stdout


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a wheel or sdist from a source tree, and return its path."""
    run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", target, cwd=str(source))
    [file] = target.iterdir()
    return file


def contents(wheel: Path) -> dict[str, bytes]:
    """Return every file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this module's builds."""
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    """The wheel, built from the files that `docker build` sends."""
    for name in sent_files():
        (folder / "sent" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "sent" / name)
    return build("wheel", folder / "sent", folder / "wheel")


@pytest.fixture(scope="module")
def sdist(folder: Path) -> Path:
    """The source distribution, unpacked."""
    with tarfile.open(build("sdist", ROOT, folder / "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [tree] = (folder / "unpacked").iterdir()
    return tree


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    [text] = [text for name, text in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    return message_from_string(text.decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, metadata: Message, folder: Path) -> Path:
    """The `bin` folder of a virtual environment with the wheel and its dependencies.

    The dependencies are linked from this environment, so nothing is downloaded.
    """
    target = folder / "venv"
    venv.create(target)
    [packages] = target.glob("lib/python*/site-packages")
    for name in needed_by(metadata.get_all("Requires-Dist", ())):
        link_distribution(name, packages)
    options = ("--offline", "--no-cache", "--no-deps", "--python", target / "bin" / "python")
    run(Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", *options, wheel)
    return target / "bin"


def needed_by(requirements: Iterable[str], extras: Iterable[str] = ()) -> set[str]:
    """Return the distributions that these requirements need on this machine, with their dependencies.

    Fails if an installed version does not satisfy a requirement.
    """
    found: dict[str, set[str]] = {}
    waiting = [(line, {"", *extras}) for line in requirements]
    while waiting:
        line, chosen = waiting.pop()
        requirement = Requirement(line)
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in chosen):
            continue
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(version(name), prereleases=True), line
        if name in found and requirement.extras <= found[name]:
            continue
        found[name] = found.get(name, set()) | requirement.extras
        waiting += [(deeper, {"", *found[name]}) for deeper in distribution(name).requires or ()]
    return set(found)


def link_distribution(name: str, packages: Path) -> None:
    """Link a distribution of this environment into another environment."""
    ours = distribution(name)
    for top in {file.parts[0] for file in ours.files or ()} - {"..", "__pycache__"}:
        if not (packages / top).exists():
            (packages / top).symlink_to(str(ours.locate_file(top)))


def pinned(lock: str) -> dict[str, str]:
    """Return name and version of the distributions that a lock file installs on this machine."""
    lines = re.findall(r"^(\S+==[^\\\n]+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    requirements = map(Requirement, lines)
    return {
        canonicalize_name(one.name): str(one.specifier)
        for one in requirements
        if one.marker is None or one.marker.evaluate()
    }


@contextmanager
def serving(command: list[str | Path], home: Path, port: int, **settings: str) -> Iterator[str]:
    """Start a server with its registry in `home`, and yield its address."""
    environment = {**settings, "HOME": str(home), "CTXR_HOME": str(home / "registry"), "CTXR_PORT": str(port)}
    process = subprocess.Popen(command, cwd="/", env=environment)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in contents(wheel) if ".dist-info/" not in name} == ours


def test_every_package_of_this_folder_is_in_the_wheel() -> None:
    inits = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert inits <= set(PACKAGES)
    assert all(list((ROOT / package).glob("*.py")) for package in PACKAGES)


def test_the_source_distribution_builds_the_same_wheel(sdist: Path, wheel: Path, folder: Path) -> None:
    assert contents(build("wheel", sdist, folder / "wheel of the sdist")) == contents(wheel)


def test_the_source_distribution_has_the_files_that_tests_need(sdist: Path) -> None:
    assert {"tests", "integrations", "Makefile", "requirements-dev.lock"} <= {path.name for path in sdist.iterdir()}


def test_the_wheel_has_metadata(metadata: Message) -> None:
    assert metadata["Summary"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Programming Language :: Python :: {metadata['Requires-Python'].removeprefix('>=')}" in metadata.get_all(
        "Classifier", ()
    )


def test_the_wheel_holds_the_licences_of_vendored_files(wheel: Path) -> None:
    """The README of the vendored files names each with its licence."""
    vendored = ROOT / "backoffice" / "static" / "vendor"
    readme = (vendored / "README.md").read_text(encoding="utf-8")
    licences = set(re.findall(r"[\w-]+-LICENSE\.txt", readme))
    assert {file.name for file in vendored.iterdir() if file.name not in readme} == {"README.md"}
    assert licences
    packaged = {Path(name).name for name in contents(wheel) if ".dist-info/licenses/" in name}
    assert packaged == {"LICENSE", "NOTICE", *licences}


def test_doctor_of_the_installed_program_names_the_command_that_adds_an_extra(
    installed: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXR_EMBED_MODEL", "minishlab/potion-base-2M")
    doctor: list[str | Path] = [installed / "ctxr", "doctor", "--json"]
    output = subprocess.run(doctor, cwd="/", stdout=subprocess.PIPE, text=True, check=False).stdout
    assert json.loads(output)
    assert f"uv pip install --python {installed / 'python'} 'context-registry[embed] @ {wheel.as_uri()}'" in output


def test_the_installed_program_connects_a_client(installed: Path, empty_home: Path) -> None:
    run(installed / "ctxr", "install", "claude-code", "--yes")
    written = json.loads((empty_home / ".claude.json").read_text(encoding="utf-8"))
    command = written["mcpServers"]["context-registry"]["command"]
    assert run(Path(command), "--version") == run(installed / "ctxr", "--version")


def test_the_image_runs_passes_its_health_check_and_serves_the_pages(installed: Path, tmp_path: Path) -> None:
    [program, *words] = command_of("CMD")
    port = free_port()
    server = serving([installed / program, *words], tmp_path, port, **image_settings())
    with server as address, httpx.Client(base_url=address, timeout=60) as http:
        [python, *check] = (word.replace(":8765/", f":{port}/") for word in command_of("HEALTHCHECK"))
        exits = (subprocess.call([installed / python, *check], cwd="/", stderr=subprocess.DEVNULL) for _ in range(20))
        assert 0 in exits  # container engines retry while the program starts
        page = http.get("/login")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        linked = re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js)[^"]*)"', page.text)
        assert linked
        assert {http.get(part).status_code for part in linked} == {200}


def image_settings() -> dict[str, str]:
    """Return the image's settings without CTXR_HOME, a folder that exists only in the image."""
    return {name: value for name, value in settings_of_the_image().items() if name != "CTXR_HOME"}


def test_the_lock_files_pin_all_dependencies(metadata: Message) -> None:
    runtime, everything = pinned("requirements.lock"), pinned("requirements-dev.lock")
    assert set(runtime) == needed_by(metadata.get_all("Requires-Dist", ()), extras=["postgres"])
    assert runtime.items() <= everything.items()


def test_nothing_private_is_sent_to_the_image() -> None:
    cases: list[str] = [".git/config", ".venv/bin/ctxr", ".env", "cli/.env", "registry.db", "dist/x.whl"]
    for name in cases:
        assert not is_sent(name, ignore_rules())


def test_no_file_that_git_ignores_is_sent_to_the_image() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    ignored = subprocess.run(
        ["git", "check-ignore", "--stdin"],
        input="\n".join(sent_files()),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ignored.stdout == ""


def test_the_ignore_file_is_read_as_docker_reads_it() -> None:
    cases: list[tuple[str, list[str], bool]] = [
        ("a.md", ["*.md"], False),
        ("docs/a.md", ["*.md"], True),
        ("docs/deep/a.md", ["**/*.md"], False),
        ("a.md", ["**/*.md"], False),
        ("docs/deep/a.md", ["docs"], False),
        ("docs/deep/a.md", ["/docs/"], False),
        ("docs/a.md", ["docs", "!docs/a.md"], True),
        ("docs/a.md", ["!docs/a.md", "docs"], False),
        ("docs2/a.md", ["docs"], True),
        ("docs2/a.md", ["docs?"], False),
        ("a/b/c.md", ["*/b"], False),
        ("x/a/b/c.md", ["*/b"], True),
        ("registry/x.py", ["*", "!registry"], True),
        ("sources/x.py", ["*", "!registry"], False),
    ]
    for path, rules, sent in cases:
        assert is_sent(path, rules) is sent


def test_all_files_have_the_version_of_pyproject(metadata: Message) -> None:
    ours = PYPROJECT["project"]["version"]
    assert metadata["Version"] == ours
    found = {file.name: set(VERSION.findall(file.read_text(encoding="utf-8"))) for file in VERSIONED}
    assert found == {file.name: {ours} for file in VERSIONED}
    assert f"\n## {ours} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    formula = ROOT / "integrations" / "homebrew" / "context-registry.rb"
    assert f"/v{ours}/context_registry-{ours}.tar.gz" in formula.read_text(encoding="utf-8")
    others = [ROOT / "compose.yaml", ROOT / "Dockerfile", ROOT / ".claude-plugin" / "marketplace.json"]
    assert [file.name for file in others if ours in file.read_text(encoding="utf-8")] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_npx_runs_the_program_with_uv_and_says_what_to_do_without_it(tmp_path: Path) -> None:
    launcher, node = ROOT / "integrations" / "npm" / "launcher.js", shutil.which("node") or ""
    without = subprocess.run([node, launcher, "try"], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (without.returncode, "Install uv" in without.stderr) == (1, True)
    uvx = tmp_path / "uvx"
    uvx.write_text('#!/bin/sh\necho "$@"; exit 3\n')
    uvx.chmod(0o755)
    done = subprocess.run(
        [node, launcher, "try", "a word"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, f"context-registry=={PYPROJECT['project']['version']} try a word\n")

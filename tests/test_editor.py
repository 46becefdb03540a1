"""The editor extension's manifest, README, code and Korean texts agree. Needs no node."""

import json
import re
from pathlib import Path
from typing import Any

EDITOR = Path(__file__).parent.parent / "editor"
HIDDEN = {"contextRegistry.more"}
"""Commands of a list's rows, which the user cannot call by name."""


def read(name: str) -> Any:
    return json.loads((EDITOR / name).read_text(encoding="utf-8"))


def test_readme_code_and_translations_have_the_commands_and_keys_of_the_manifest() -> None:
    manifest, english, korean = read("package.json"), read("package.nls.json"), read("package.nls.ko.json")
    offered = manifest["contributes"]
    titles = {one["command"]: english[one["title"].strip("%")] for one in offered["commands"]}
    keys = {one["command"]: one["key"] for one in offered["keybindings"]}
    rows = re.findall(
        r"^\| `(contextRegistry\.\w+)` \| (.+?) \| (?:`(.+?)` )?\|",
        (EDITOR / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    shown = {command: (title, key) for command, title, key in rows if command in titles}
    assert shown == {one: (title, keys.get(one, "")) for one, title in titles.items() if one not in HIDDEN}
    table = (EDITOR / "src/commands.ts").read_text(encoding="utf-8").partition("COMMANDS")[2].partition("\n};")[0]
    assert {f"contextRegistry.{name}" for name in re.findall(r"^  (\w+)[,:]", table, re.MULTILINE)} == titles.keys()
    assert set(re.findall(r"%([\w.]+)%", json.dumps(manifest))) == english.keys() == korean.keys()

    used = {one["command"] for menu in offered["menus"].values() for one in menu} | keys.keys()
    assert used <= titles.keys()
    for path in (manifest["icon"], offered["viewsContainers"]["activitybar"][0]["icon"]):
        assert (EDITOR / path).is_file()
    settings = offered["configuration"]["properties"]
    assert all(name in (EDITOR / "README.md").read_text(encoding="utf-8") for name in settings)
    for guarded in ("serverUrl", "program"):
        assert settings[f"contextRegistry.{guarded}"]["scope"] == "machine", "a workspace cannot set it"


def test_every_text_of_the_editor_has_its_korean() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (EDITOR / "src").glob("*.ts"))
    texts, korean = set(re.findall(r'l10n\.t\(\s*"([^"]*)"', code)), read("l10n/bundle.l10n.ko.json")
    assert len(re.findall(r"l10n\.t\(", code)) == len(re.findall(r'l10n\.t\(\s*"', code)), "texts are literals"
    assert texts == korean.keys()
    for english, translated in korean.items():
        assert sorted(re.findall(r"\{\d\}", english)) == sorted(re.findall(r"\{\d\}", translated))

"""An `.mcpb` bundle: what Claude Desktop installs by a double click.

It holds no program. Ours needs its database and libraries, which a bundle for every machine cannot carry; so it starts
the one that made it, as every other client does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import metadata
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cli.connect.snippets import SERVER, StdioServer

EXECUTABLE = 0o755 << 16


def bundle(server: StdioServer) -> bytes:
    """The bundle's bytes: the same for the same program and settings."""
    name, text = _launcher(server)
    about = json.dumps(manifest(server, name), ensure_ascii=False, indent=2) + "\n"
    held = BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as zipped:
        zipped.writestr(ZipInfo("manifest.json"), about)
        launcher = ZipInfo(name)
        launcher.external_attr = EXECUTABLE
        zipped.writestr(launcher, text)
    return held.getvalue()


def manifest(server: StdioServer, entry_point: str) -> dict[str, Any]:
    """Return the bundle's manifest; `entry_point`: a file in the bundle."""
    about = metadata(SERVER)
    return {
        "manifest_version": "0.3",
        "name": SERVER,
        "display_name": "Context Registry",
        "version": about["Version"],
        "description": about["Summary"],
        "author": {"name": "Context Registry"},
        "license": about["License-Expression"],
        "keywords": ["conversation history", "memory"],
        "server": {"type": "binary", "entry_point": entry_point, "mcp_config": server.entry()},
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": [sys.platform]},
    }


def _launcher(server: StdioServer) -> tuple[str, str]:
    """A file that does by itself what the manifest says, since there must be one: its name in the bundle, its text."""
    if os.name == "nt":
        settings = "".join(f'set "{name}={value}"\r\n' for name, value in server.env.items())
        return "server/start.cmd", f"@echo off\r\n{settings}{subprocess.list2cmdline(server.command)} %*\r\n"
    return "server/start", f'#!/bin/sh\nexec {server.shell_command()} "$@"\n'

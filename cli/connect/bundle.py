"""An `.mcpb` bundle, which Claude Desktop installs by a double click. It starts the program that made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import metadata
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cli.connect.snippets import SERVER, StdioServer


def bundle(server: StdioServer) -> bytes:
    """Return the bundle's bytes: a manifest and a launcher script."""
    about = metadata(SERVER)
    if os.name == "nt":
        settings = "".join(f'set "{name}={value}"\r\n' for name, value in server.env.items())
        name, script = "server/start.cmd", f"@echo off\r\n{settings}{subprocess.list2cmdline(server.command)} %*\r\n"
    else:
        name, script = "server/start", f'#!/bin/sh\nexec {server.shell_command()} "$@"\n'
    manifest = {
        "manifest_version": "0.3",
        "name": SERVER,
        "display_name": "Context Registry",
        "version": about["Version"],
        "description": about["Summary"],
        "author": {"name": "Context Registry"},
        "license": about["License-Expression"],
        "keywords": ["conversation history", "memory"],
        "server": {"type": "binary", "entry_point": name, "mcp_config": server.entry()},
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": [sys.platform]},
    }
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as zipped:
        zipped.writestr(ZipInfo("manifest.json"), json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
        launcher = ZipInfo(name)
        launcher.external_attr = 0o755 << 16
        zipped.writestr(launcher, script)
    return content.getvalue()

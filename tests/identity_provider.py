"""A local OpenID Connect provider (nanoidp) with a few people."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx
import yaml

from tests.conformance.servers import free_port, wait_for

RESOURCE = "https://memory.example.org/mcp"
PEOPLE = {"kim": ["staff"], "lee": ["billing"], "eve": ["guests"], "ann": ["staff", "ops"]}
"""Groups of each person. A password is the name, twice."""


class IdentityProvider:
    """A provider that runs at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address

    def sign_in(self, page: str, name: str) -> str:
        """Sign a person in on the provider's page, and return the address it redirects to."""
        with httpx.Client() as browser:
            form = browser.get(page)
            hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form.text)
            fields = {field: unescape(value) for field, value in hidden}
            answer = browser.post(page, data={**fields, "username": name, "password": name * 2})
        return answer.headers["location"]

    def access_token(self, name: str, scope: str = "registry:write") -> str:
        """Return a person's access token for `/mcp`."""
        person = {"grant_type": "password", "username": name, "password": name * 2, "scope": f"openid {scope}"}
        answer = httpx.post(f"{self.address}/token", data=person, auth=("context-registry", "client-secret"))
        return str(answer.json()["access_token"])


@contextmanager
def running_provider(
    folder: Path, people: Mapping[str, list[str]] = PEOPLE, resource: str = RESOURCE
) -> Iterator[IdentityProvider]:
    """Run the provider for people in groups, with its configuration and keys in the folder."""
    port = free_port()
    address = f"http://localhost:{port}"
    confidential = {"redirect_uris": ["http://127.0.0.1/login/oauth/done"], "client_secret": "client-secret"}
    settings = {
        "config_version": 1,
        "oauth": {
            "issuer": address,
            "audience": resource,
            "scopes_supported": ["openid", "groups", "registry:read", "registry:write", "registry:admin"],
            "clients": [
                {**confidential, "client_id": "context-registry"},
                {**confidential, "client_id": "pages-post", "token_endpoint_auth_method": "client_secret_post"},
                {
                    "client_id": "pages",
                    "token_endpoint_auth_method": "none",
                    "redirect_uris": ["http://127.0.0.1/login/oauth/done"],
                    "allowed_scopes": ["openid", "groups"],
                },
            ],
        },
        "session": {"enforce_password_check": True},
        "jwt": {"keys_dir": str(folder / "keys")},
    }
    users = {name: {"password": name * 2, "groups": groups} for name, groups in people.items()}
    for name, document in (("settings", settings), ("users", {"config_version": 1, "users": users})):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [sys.executable, "-m", "nanoidp", "--config", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_for(port, process)
        yield IdentityProvider(address)
    finally:
        process.terminate()
        process.wait()

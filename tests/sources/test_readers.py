"""The tables of clients and readers are consistent."""

from __future__ import annotations

import re
from pathlib import Path

import cli.incoming.hook
from sources.clients import CLIENTS
from sources.readers import READERS


def test_every_reader_belongs_to_a_client_and_is_in_the_table_of_histories() -> None:
    file = Path(__file__).parents[2] / "docs" / "clients.md"
    table = file.read_text(encoding="utf-8").partition("## Where histories")[2]
    names = {reader.name for reader in READERS}
    assert names <= {client.source for client in CLIENTS}
    assert names == set(re.findall(r"^\| [^|]+ \| `([a-z][a-z-]+)` \|", table, re.MULTILINE))


def test_no_two_clients_share_a_name() -> None:
    handshakes = [name for client in CLIENTS for name in client.handshake]
    for names in (handshakes, [client.source for client in CLIENTS], [client.name for client in CLIENTS]):
        assert len(set(names)) == len(names)
    assert handshakes == [name.lower() for name in handshakes]


def test_the_hook_knows_every_client_with_hooks_and_its_events() -> None:
    hooked = {client.source: client.hooks for client in CLIENTS if client.hooks}
    assert set(cli.incoming.hook.CLIENTS) == set(hooked)
    assert {field for hooks in hooked.values() for _, field in hooks.message_fields.values()} <= set(
        cli.incoming.hook.RECORDED_FIELDS
    )

"""PostgreSQL over the network: `sslmode=verify-full` verifies the server, and dead connections time out."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import psycopg
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from registry.errors import StorageError
from registry.registry import Registry

pytestmark = pytest.mark.anyio

SSL_REQUEST = bytes.fromhex("0000000804d2162f")
"""The protocol's message SSLRequest, with which a client asks for TLS."""
ALWAYS = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


class Signed(NamedTuple):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, folder: Path, name: str) -> Path:
        """Write both to one PEM file, and return its path."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / name).write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM) + key)
        return folder / name


def signed(name: str, by: Signed | None = None) -> Signed:
    """Return a certificate for a host name, signed by an authority; without one, a self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(by.certificate.subject if by else subject, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ALWAYS[0])
        .not_valid_after(ALWAYS[1])
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if by:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return Signed(made.sign(by.key if by else key, hashes.SHA256()), key)


@pytest.fixture
def authority(tmp_path: Path) -> Signed:
    made = signed("An authority")
    made.write(tmp_path, "authority.pem")
    signed("Another authority").write(tmp_path, "other.pem")
    return made


@pytest.fixture
async def server(authority: Signed, tmp_path: Path, postgres_url: str) -> AsyncIterator[str]:
    """Start a TLS proxy for `localhost` in front of the tests' PostgreSQL, and yield its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed("localhost", authority).write(tmp_path, "server.pem"))
    known = psycopg.conninfo.conninfo_to_dict(postgres_url)

    async def serve_client(client: SocketStream) -> None:
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ExceptionGroup):
            async with client:
                while await client.receive(len(SSL_REQUEST)) != SSL_REQUEST:
                    await client.send(b"N")  # no GSSAPI encryption
                await client.send(b"S")
                near = await TLSStream.wrap(client, server_side=True, ssl_context=context, standard_compatible=False)
                far = await anyio.connect_unix(f"{known['host']}/.s.PGSQL.5432")
                async with near, far, anyio.create_task_group() as group:
                    group.start_soon(pass_on, near, far, group.cancel_scope)
                    group.start_soon(pass_on, far, near, group.cancel_scope)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listening,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listening.serve, serve_client)
        port = listening.extra(SocketAttribute.local_port)  # noqa: S610
        yield f"postgresql://postgres@{{host}}:{port}/{known['dbname']}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={tmp_path}"
        group.cancel_scope.cancel()


async def pass_on(source: ByteStream, sink: ByteStream, scope: anyio.CancelScope) -> None:
    async for piece in source:
        await sink.send(piece)
    scope.cancel()


async def count_messages(url: str) -> int:
    """Return the number of messages in the registry at an address."""
    registry = await asyncio.to_thread(Registry, url)
    try:
        return int(await registry.read(lambda tx: tx.exec_driver_sql("SELECT count(*) FROM conversation").scalar_one()))
    finally:
        await asyncio.to_thread(registry.close)


async def test_a_verified_server_is_used(server: str) -> None:
    assert await count_messages(f"{server.format(host='localhost')}/authority.pem") == 0


@pytest.mark.parametrize(
    ("host", "authority_file", "why"),
    [
        ("localhost", "other.pem", "certificate verify failed"),
        ("127.0.0.1", "authority.pem", "does not match"),
        ("localhost", "missing.pem", "does not exist"),
    ],
)
async def test_an_unverified_server_is_refused(
    server: str, host: str, authority_file: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")  # the language of the driver's messages
    with pytest.raises(StorageError) as refused:
        await count_messages(f"{server.format(host=host)}/{authority_file}")
    assert why in str(refused.value.details)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such limit")
@pytest.mark.parametrize(("address", "limit_ms"), [("", 20_000), ("&tcp_user_timeout=5000", 5_000)])
async def test_a_dead_connection_times_out_within_half_a_minute(server: str, address: str, limit_ms: int) -> None:
    def limits(tx: Any) -> tuple[int, int]:
        with socket.socket(fileno=os.dup(tx.connection.driver_connection.fileno())) as line:
            idle_s = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            return idle_s, line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    registry = await asyncio.to_thread(Registry, f"{server.format(host='localhost')}/authority.pem{address}")
    assert await registry.read(limits) == (10, limit_ms)
    await asyncio.to_thread(registry.close)

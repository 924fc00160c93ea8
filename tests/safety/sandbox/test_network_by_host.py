"""SAFETY 22, O6: commands reach the hosts that the user allowed, through the gateway, and no others."""

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from duckflow.domain.hosts import covers, read_host, registries
from duckflow.safety.sandbox.gateway import Gateway
from fakes.rows import Failures

CURL = "curl -sS --max-time 20 "


@asynccontextmanager
async def web_server(
    answer: bytes = b"hello", secure: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server on this machine: its port, and the requests it got."""
    got: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=secure)
    async with server:
        yield server.sockets[0].getsockname()[1], got


@pytest.fixture
async def contacts():
    return []


async def shell_with(open_shell, folder, level, contacts, **settings):
    shell = await open_shell(folder, level, copies=folder.parent / "copies", **settings)
    shell.contacted = lambda one: contacts.append((one.host, one.port, one.outcome))
    return shell


async def test_SAFETY22_a_command_reaches_an_allowed_host_and_each_contact_is_told(
    folder, copying, open_shell, contacts
):
    async with web_server() as (port, got):
        shell = await shell_with(open_shell, folder, copying, contacts, private_hosts=True)
        address = f"localhost:{port}"
        result = await shell.run(f"{CURL} --noproxy '' http://{address}/a?b=1", hosts=(address,))
        assert (result.exit_code, result.output, result.refused_hosts) == (0, "hello", ())
        assert got[0].startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n" % port)
        assert b"Proxy" not in got[0]
    assert contacts == [("localhost", port, "connected")]


async def test_SAFETY22_other_hosts_are_refused_and_named(folder, copying, open_shell, contacts):
    shell = await shell_with(open_shell, folder, copying, contacts)
    result = await shell.run(
        f"{CURL} -o /dev/null -w '%{{http_code}}' http://example.com/; {CURL} https://example.org"
    )
    assert result.output.startswith("403")
    assert result.refused_hosts == ("example.com", "example.org")
    assert contacts == [("example.com", 80, "refused"), ("example.org", 443, "refused")]


async def test_SAFETY22_a_private_network_is_refused_even_for_an_allowed_host(
    folder, copying, open_shell, contacts
):
    async with web_server() as (port, got):
        shell = await shell_with(open_shell, folder, copying, contacts)
        for host in (f"localhost:{port}", f"127.0.0.1:{port}"):
            result = await shell.run(f"{CURL} --noproxy '' http://{host}/", hosts=(host,))
            assert "private network" in result.output, host
            assert result.refused_hosts == (host,)
    assert got == []


async def test_SAFETY22_only_usual_ports_and_whole_requests_pass(folder, copying, open_shell, contacts):
    async with web_server() as (port, got):
        shell = await shell_with(open_shell, folder, copying, contacts, private_hosts=True)
        sent = {
            "CONNECT localhost:22 HTTP/1.1": "403",
            f"CONNECT localhost:{port} HTTP/1.1": "403",
            "GET / HTTP/1.1": "400",
            f"GET ftp://localhost:{port}/ HTTP/1.1": "400",
            f"GET http://u:p@localhost:{port}/ HTTP/1.1": "400",
            "GET http://localhost /": "400",
            "CONNECT http://localhost:443 HTTP/1.1": "400",
        }
        wrong = Failures()
        for line, status in sent.items():
            code = (
                "import os, socket; to = os.environ['http_proxy'].rpartition(':')[2]; "
                "s = socket.create_connection(('127.0.0.1', int(to))); "
                f"s.sendall({line!r}.encode() + b'\\r\\n\\r\\n'); print(s.recv(99).decode())"
            )
            with wrong.of(line):
                result = await shell.run(f'python3 -c "{code}"', hosts=("localhost",))
                assert result.output.startswith(f"HTTP/1.1 {status}"), result.output
        wrong.report()
        assert got == []


async def test_SAFETY22_a_second_request_on_a_connection_goes_to_the_same_host(
    folder, copying, open_shell, contacts
):
    async with web_server() as (port, got):
        shell = await shell_with(open_shell, folder, copying, contacts, private_hosts=True)
        first = f"GET http://localhost:{port}/ HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"
        code = (
            "import os, socket; to = os.environ['http_proxy'].rpartition(':')[2]; "
            "s = socket.create_connection(('127.0.0.1', int(to))); "
            f"s.sendall(b'{first}GET http://evil.example/ HTTP/1.1\\r\\n\\r\\n'); s.recv(99)"
        )
        await shell.run(f'python3 -c "{code}"', hosts=(f"localhost:{port}",))
        (request,) = got
        assert b"other.example" not in request
    assert contacts == [("localhost", port, "connected")]


async def test_SAFETY22_programs_that_go_nowhere_see_no_proxy(folder, copying, open_shell, contacts):
    shell = await shell_with(open_shell, folder, copying, contacts)
    assert "127.0.0.1" not in (await shell.run("env")).output


async def test_SAFETY22_background_commands_reach_allowed_hosts_too(folder, copying, open_shell, contacts):
    async with web_server() as (port, _):
        shell = await shell_with(open_shell, folder, copying, contacts, private_hosts=True)
        address = f"localhost:{port}"
        started = await shell.start(f"{CURL} --noproxy '' http://{address}/", hosts=(address,))
        said = await shell.read(started, 30, for_end=True)
        assert (said.text, said.exit_code) == ("hello", 0)
        await shell.end_background()
    assert contacts == [("localhost", port, "connected")]


def test_SAFETY22_grants_cover_hosts_below_a_star_ports_that_they_name_and_registries():
    rows = [
        (("github.com",), "github.com", True),
        (("github.com",), "api.github.com", False),
        (("github.com",), "github.com:8080", False),
        (("github.com:8080",), "github.com:8080", True),
        (("*.github.com",), "api.github.com", True),
        (("*.github.com",), "github.com", False),
        (("*.github.com",), "evilgithub.com", False),
        (("registries",), "index.crates.io", True),
        (("registries",), "registries", True),
        (("registries",), "crates.io.evil.example", False),
        ((), "github.com", False),
    ]
    assert [row for row in rows if covers(row[0], row[1]) is not row[2]] == []
    assert len(registries()) > 20


def test_SAFETY22_what_is_no_host_is_said():
    assert [read_host(one) for one in (" GitHub.com", "*.a.b", "a.b:81")] == ["github.com", "*.a.b", "a.b:81"]
    for wrong in (
        "https://a.b",
        "a b",
        "a.b:x",
        "*",
        "*.*.a",
        "ä.de",
        "",
        "a..b",
        "a/b",
        "x" * 300,
        "a:٨٠",
        "a:0",
    ):
        with pytest.raises(ValueError, match="is no host"):
            read_host(wrong)


@asynccontextmanager
async def proxy(
    contacts, *hosts: str, private: bool = True, **tokens: str
) -> AsyncIterator[tuple[Gateway, int]]:
    """A gateway on a port of this machine, as a command sees it."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    gateway = Gateway(hosts, contacts.append, private=private, tokens=tokens)
    await gateway.serve(listening)
    try:
        yield gateway, port
    finally:
        await gateway.aclose()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_SAFETY22_only_addresses_that_were_judged_are_connected_to(contacts, monkeypatch):
    """A name server that gives another answer the next time gains nothing."""
    answers = [["93.184.215.14"], ["93.184.215.14", "127.0.0.1"], ["10.0.0.1"]]
    tried, really_open = [], asyncio.open_connection

    async def found(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (one, 443)) for one in answers.pop(0)]

    async def connect(host: str, port: int, **options: object) -> object:
        if port != own_port:
            tried.append(host)
            raise OSError
        return await really_open(host, port, **options)

    async with proxy(contacts, "a.example", private=False) as (_, own_port):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        monkeypatch.setattr(asyncio, "open_connection", connect)
        said = [await status_of(own_port, "CONNECT a.example:443") for _ in range(3)]
    assert (said, tried, answers) == (["502", "403", "403"], ["93.184.215.14"], [])


async def status_of(port: int, line: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{line} HTTP/1.1\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n")[0].decode().removeprefix("HTTP/1.1 ")[:3]


async def test_SAFETY22_odd_names_methods_and_the_word_registries_are_answered_and_reach_nothing(contacts):
    failed = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    async with proxy(
        contacts, "registries", "*.a.example", "localhost", "localhost:99999", localhost="tok"
    ) as (_, port):
        wrong = Failures()
        for line, status in {
            "CONNECT registries:443": "403",
            "GET http://registries/": "403",
            "CONNECT x..a.example:443": "400",
            f"CONNECT {'x' * 64}.a.example:443": "400",
            "TRACE http://localhost/": "405",
            "CONNECT [::1]:443": "400",
            "CONNECT localhost..:443": "400",
            "CONNECT localhost:0": "400",
            "CONNECT localhost:99999": "502",
            "GET http://localhost@a.example/": "400",
            "GET http://2130706433/": "403",
            "GET http://LOCALHOST\r\nX: y/": "400",
        }.items():
            with wrong.of(line):
                assert await status_of(port, line) == status
        wrong.report()
    assert failed == []
    assert "connected" not in {one.outcome for one in contacts}


async def test_SAFETY22_a_command_can_not_use_up_duckflow_with_connections_or_refused_hosts(contacts):
    async with proxy(contacts) as (gateway, port):
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(201)]
        with suppress(ConnectionError):
            assert await opened[-1][0].read() == b""
        assert not opened[0][0].at_eof()
        for _, writer in opened:
            writer.close()
        await asyncio.gather(*(reader.read() for reader, _ in opened[:-1]))
        for number in range(600):
            assert await status_of(port, f"CONNECT h{number % 550}.example:443") == "403"
        assert len(contacts) == len(gateway.refused) == 500


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
async def test_SAFETY22_no_connection_outlives_its_command_even_if_the_host_reads_nothing(contacts):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        host = f"localhost:{deaf.getsockname()[1]}"
        async with proxy(contacts, host) as (gateway, port):
            client = socket.create_connection(("127.0.0.1", port))
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            before = descriptors()
            await loop.sock_sendall(client, f"POST http://{host}/ HTTP/1.1\r\n\r\n".encode())
            theirs = await asyncio.to_thread(deaf.accept)
            idle = 0
            while idle < 1_000:  # until all buffers are full
                try:
                    client.send(bytes(1 << 16))
                    idle = 0
                except BlockingIOError:
                    idle += 1
                    await asyncio.sleep(0)
            failed = []
            loop.set_exception_handler(lambda _, context: failed.append(context))
            await gateway.aclose()
            await asyncio.sleep(0)
            assert failed == [], "a traceback would be printed"
            assert descriptors() <= before
            client.close()
            theirs[0].close()


async def test_SAFETY22_a_lent_token_goes_to_its_host_encrypted_and_never_into_the_sandbox(
    folder, copying, open_shell, contacts, tmp_path, monkeypatch
):
    certificate, secure = certificate_of_localhost(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with web_server(secure=secure) as (port, got), web_server() as (other, plainly):
        host = f"localhost:{port}"
        settings = {"private_hosts": True, "hosts": (host, f"localhost:{other}"), "tokens": {host: "LENT"}}
        env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LENT": "tok-123"}
        shell = await shell_with(open_shell, folder, copying, contacts, env=env, **settings)
        seen = f"env; {CURL} --noproxy '' -H 'Authorization: mine' http://{host}/api"
        said = await shell.run(f"{seen}; {CURL} --noproxy '' http://localhost:{other}/")
        assert said.output.endswith("hellohello"), said.output
        assert "tok-123" not in said.output
        (request,), (without,) = got, plainly
        assert b"\r\nAuthorization: Bearer tok-123\r\n" in request
        assert b"mine" not in request
        assert b"Authorization" not in without
        await shell.run(f"no_proxy= NO_PROXY= git ls-remote https://{host}/a/b.git", timeout_s=20)
        assert b"GET /a/b.git/info/refs?service=git-upload-pack" in got[1]
        assert b"Authorization: Basic eC1hY2Nlc3MtdG9rZW46dG9rLTEyMw==" in got[1]


def certificate_of_localhost(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate that signs itself, and what a server needs to use it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(made.public_bytes(Encoding.PEM))
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return folder / "certificate.pem", secure

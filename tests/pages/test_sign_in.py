"""Test sign-in by OpenID Connect at a real provider, and refused sign-ins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.async_api import Page, expect

from cli.running.serve import build_app
from orchestrator.outside.issuer import Issuer
from orchestrator.outside.sign_in import Attempt, Person, SignIn
from registry.access import Access, Level
from registry.errors import InvalidRequest, StorageError, Unauthorized
from registry.settings import Settings, read_settings
from tests.backoffice.application import with_known_routes
from tests.cli.running.test_oauth import AuthorizationServer, asked, call
from tests.conformance.servers import free_port
from tests.identity_provider import RESOURCE, IdentityProvider, running_provider
from tests.pages.axe import violations
from tests.pages.conftest import served

pytestmark = pytest.mark.anyio

GROUPS = ("staff=write", "ops=admin", "billing=read:/srv/billing")
HERE = "http://127.0.0.1:8765"
DONE = "/login/oauth/done"
NO_SCOPES: tuple[Any, ...] = (None, 7, [{}], "", "openid")
Server = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    with running_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path, provider: IdentityProvider) -> dict[str, Any]:
    """Return the settings of a server that knows the provider and its groups."""
    return {
        "home": tmp_path,
        "database_url": sqlite_url,
        "public_url": HERE,
        "oauth_issuer": provider.address,
        "oauth_audience": RESOURCE,
        "oauth_client_id": "pages",
        "oauth_groups": GROUPS,
    }


@pytest.fixture
def server(settings: dict[str, Any]) -> Server:
    """Return a function that opens a server, and a browser without scripts."""

    @asynccontextmanager
    async def opened(**others: Any) -> AsyncIterator[httpx.AsyncClient]:
        app = with_known_routes(lambda: build_app(Settings(**{**settings, **others})))
        headers = {"accept": "text/html", "origin": HERE}
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=HERE, headers=headers) as browser,
        ):
            yield browser

    return opened


async def provider_page(browser: httpx.AsyncClient, next: str = "/") -> str:
    """Follow the button on the sign-in page; return the address of the provider's page."""
    answer = await browser.get("/login/oauth", params={"next": next})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def sign_in(browser: httpx.AsyncClient, provider: IdentityProvider, name: str, next: str = "/") -> httpx.Response:
    back = provider.sign_in(await provider_page(browser, next), name)
    assert back.startswith(HERE + DONE), back
    return await browser.get(back)


async def test_opening_a_page_leads_to_the_provider_and_back_to_the_page(
    server: Server, provider: IdentityProvider
) -> None:
    async with server() as browser:
        refused = await browser.get("/insights?from=7d")
        shown = await browser.get(refused.headers["location"])
        assert 'href="/login/oauth?next=%2Finsights%3Ffrom%3D7d"' in shown.text
        done = await sign_in(browser, provider, "kim", "/insights?from=7d")
        assert '<meta http-equiv="refresh" content="0; url=/insights?from=7d">' in done.text
        session = next(line for line in done.headers.get_list("set-cookie") if line.startswith("ctxr_session="))
        assert "HttpOnly" in session
        assert "SameSite=strict" in session
        assert (await browser.get("/insights?from=7d")).status_code == 200
        assert not [name for name in browser.cookies if name != "ctxr_session"]
        await browser.post("/logout")
        assert (await browser.get("/insights")).headers["location"].startswith("/login")


async def test_a_person_sees_on_the_pages_what_their_client_logged_on_mcp(
    server: Server, provider: IdentityProvider
) -> None:
    async with server() as browser:
        log = call("conversation_log", channel="cursor_1", messages=[{"role": "user", "text": "memoize fibonacci"}])
        stored = await asked(browser, provider.access_token("kim"), log)
        assert stored.json()["result"]["structuredContent"]["ok"], stored.text
        for name, count in (("kim", 1), ("lee", 0), ("ann", 1)):
            await sign_in(browser, provider, name)
            assert (await browser.get("/bo/channels")).json()["total"] == count, name
            await browser.post("/logout")


async def test_the_page_of_tokens_does_not_call_a_server_with_sign_in_open(
    server: Server, provider: IdentityProvider
) -> None:
    async with server() as browser:
        for name in ("kim", "ann"):
            await sign_in(browser, provider, name)
            page = (await browser.get("/settings/access")).text
            assert "No tokens to show." in page
            assert "anyone" not in page


def rights_of(access: Access | None) -> tuple[str, tuple[str, ...]] | None:
    return (access.level, access.projects) if access else None


def test_groups_decide_the_level(provider: IdentityProvider) -> None:
    client = SignIn(Issuer(provider.address, GROUPS), "pages", "", HERE + DONE)
    cases = {"kim": ("write", ()), "lee": ("read", ("/srv/billing",)), "ann": ("admin", ()), "eve": None}
    for name, rights in cases.items():
        attempt = Attempt("/")
        back = provider.sign_in(client.address(attempt), name)
        person = client.person(attempt, httpx.URL(back).params["code"])
        assert (person.name, rights_of(person.access)) == (f"oauth:{name}", rights)


def test_a_scope_limits_the_rights_of_groups_and_adds_none() -> None:
    cases: list[tuple[dict[str, Any], tuple[str, tuple[str, ...]] | None]] = [
        ({"groups": ["staff"], "scope": "registry:read"}, ("read", ())),
        ({"groups": ["staff"], "scope": "registry:admin"}, ("write", ())),
        ({"scope": "registry:admin"}, None),
        ({"groups": ["billing", "staff"]}, ("write", ())),
        ({"groups": ["billing", "guests"]}, ("read", ("/srv/billing",))),
        *(({"groups": ["staff"], "scope": scope}, ("write", ())) for scope in NO_SCOPES),
        ({"groups": ["staff"], "registry_projects": ["/srv/web"]}, ("write", ("/srv/web",))),
        ({"groups": ["staff"], "registry_channels": "codex_*"}, None),
        ({"groups": "staff"}, None),
        ({"groups": ["STAFF", "staff=write", "cn=staff"]}, None),
    ]
    issuer = Issuer("https://issuer.example.org", GROUPS)
    for claims, rights in cases:
        assert rights_of(issuer.access_of({"sub": "kim", **claims})) == rights, claims


def test_a_group_name_may_have_spaces_and_other_characters() -> None:
    issuer = Issuer("https://issuer.example.org", ["cn=payments,ou=groups=write:/srv/payments"])
    access = issuer.access_of({"sub": "kim", "groups": ["cn=payments,ou=groups"]})
    assert rights_of(access) == ("write", ("/srv/payments",))


def test_a_client_with_a_secret_sends_it_as_the_provider_requires(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = Issuer(provider.address, GROUPS)
    for client_id, way in (("context-registry", "client_secret_basic"), ("pages-post", "client_secret_post")):
        monkeypatch.setitem(issuer.metadata(), "token_endpoint_auth_methods_supported", [way])
        for secret, expected in (
            ("client-secret", nullcontext()),
            ("another", pytest.raises(Unauthorized, match="refused")),
        ):
            client, attempt = SignIn(issuer, client_id, secret, HERE + DONE), Attempt("/")
            code = httpx.URL(provider.sign_in(client.address(attempt), "kim")).params["code"]
            with expected:
                assert client.person(attempt, code).name == "oauth:kim"


async def test_a_person_without_access_is_told_what_to_do(server: Server, provider: IdentityProvider) -> None:
    cases = {
        "en": "You are signed in, but your account has no access to this registry.",
        "ko": "로그인했지만 이 계정에는 레지스트리를 사용할 권한이 없습니다.",
    }
    async with server() as browser:
        for language, expected in cases.items():
            browser.cookies.set("lang", language)
            answer = await sign_in(browser, provider, "eve")
            assert answer.status_code == 403
            for shown in (expected, "oauth:eve\n", "guests"):
                assert shown in answer.text
            assert (await browser.get("/")).status_code == 303


@pytest.mark.parametrize(("groups", "status"), [("staff=write", 200), ("guests=read", 401)])
async def test_open_sessions_get_the_rights_of_a_later_sign_in(
    server: Server, provider: IdentityProvider, groups: str, status: int
) -> None:
    async with server() as browser:
        await sign_in(browser, provider, "ann")
        assert (await browser.get("/bo/backups")).status_code == 200
        session = {"cookie": f"ctxr_session={browser.cookies['ctxr_session']}"}
    async with server(oauth_groups=(groups,)) as browser:
        assert (await browser.get("/bo/backups", headers=session)).status_code == 200
        await sign_in(browser, provider, "ann")
        browser.cookies.clear()
        for path, answered in (("/bo/backups", 401), ("/bo/channels", status)):
            assert (await browser.get(path, headers=session)).status_code == answered, path


async def test_a_sign_in_ends_only_in_the_browser_that_began_it(server: Server, provider: IdentityProvider) -> None:
    async with server() as browser:
        back = provider.sign_in(await provider_page(browser), "kim")
        foreign = back.replace("state=", "state=x")
        begun_here = dict(browser.cookies)
        for cookies, address in (({}, back), (begun_here, foreign), (begun_here, f"{HERE}{DONE}")):
            browser.cookies = httpx.Cookies(cookies)
            answer = await browser.get(address)
            assert answer.status_code == 400, address
            assert "This sign-in took too long, or another browser began it." in answer.text
            assert "ctxr_session" not in browser.cookies
        browser.cookies = httpx.Cookies(begun_here)
        assert (await browser.get(back)).status_code == 200
        browser.cookies = httpx.Cookies(begun_here)
        assert (await browser.get(back)).status_code == 401, "a code is valid once"


async def test_a_refusal_of_the_provider_is_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with server() as browser:
        state = dict(parse_qsl(urlsplit(await provider_page(browser)).query))["state"]
        answer = await browser.get(DONE, params={"state": state, "error": "access_denied"})
        assert answer.status_code == 401
        assert "The sign-in did not succeed." in answer.text
        assert "access_denied" in caplog.text


async def test_a_sign_in_leads_to_no_other_site(server: Server, provider: IdentityProvider) -> None:
    """An address too long for the cookie that stores it is dropped, too."""
    elsewhere = (
        "https://elsewhere.example.org",
        "//elsewhere.example.org",
        "/\\elsewhere",
        "x",
        "//[x",
        "/" + "가" * 500,
    )
    async with server() as browser:
        for next in elsewhere:
            assert 'content="0; url=/">' in (await sign_in(browser, provider, "kim", next)).text, next


async def test_during_an_outage_of_the_provider_the_page_says_so_and_a_token_still_works(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with server(oauth_issuer=f"http://localhost:{free_port()}") as browser:
        answer = await browser.get("/login/oauth")
        assert answer.status_code == 503
        assert "The sign-in service does not answer." in answer.text
        assert 'name="token"' in answer.text
        assert "CTXR_OAUTH_ISSUER" in caplog.text


async def test_sign_ins_that_wait_for_the_provider_delay_no_one_else(
    server: Server, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = Event()
    monkeypatch.setattr(SignIn, "person", lambda *_: hangs.wait(20) and Person("kim", (), None))
    async with server() as browser, asyncio.TaskGroup() as waiting:
        back = provider.sign_in(await provider_page(browser), "kim")
        for _ in range(40):
            waiting.create_task(browser.get(back))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            bearer = {"authorization": f"Bearer {provider.access_token('lee')}"}
            assert (await browser.get("/bo/channels", headers=bearer)).status_code == 200
        hangs.set()


async def test_without_a_client_id_there_is_no_sign_in_by_provider(server: Server) -> None:
    async with server(oauth_client_id="") as browser:
        assert "/login/oauth" not in (await browser.get("/login")).text
        assert (await browser.get("/login/oauth")).status_code == 404
        assert (await browser.get(DONE)).status_code == 404


class ForgedAnswers(SignIn):
    """A client whose issuer answers with given claims."""

    def __init__(self, issuer: Issuer, token: str) -> None:
        super().__init__(issuer, "pages", "", HERE + DONE)
        self._token = token

    def _exchange(self, attempt: Attempt, code: str) -> dict[str, Any]:
        return {"id_token": self._token, "scope": "openid registry:admin"}


@pytest.fixture(scope="module")
def forger() -> Iterator[AuthorizationServer]:
    """Return an issuer that signs any claims."""
    with AuthorizationServer.running() as server:
        yield server


def test_an_id_token_is_valid_only_for_this_client_this_attempt_and_now(forger: AuthorizationServer) -> None:
    attempt, issuer = Attempt("/"), Issuer(forger.address, GROUPS)
    good: dict[str, Any] = {"aud": "pages", "nonce": attempt.nonce, "scope": None, "groups": ["billing"]}
    person = ForgedAnswers(issuer, forger.token(**good)).person(attempt, "code")
    assert person.access is not None
    assert (person.name, person.access.level) == ("oauth:me", Level.READ)
    bad: list[dict[str, Any]] = [
        {"aud": "another-client"},
        {"aud": ["pages", "another-client"], "azp": "another-client"},
        {"aud": None},
        {"nonce": "of-another-attempt"},
        {"nonce": None},
        {"exp": time.time() - 600},
        {"exp": None},
        {"iss": "https://elsewhere.example.org"},
        {"sub": None},
        {"key": ec.generate_private_key(ec.SECP256R1())},
        {"key": "a" * 32, "algorithm": "HS256"},
    ]
    tokens = [forger.token(**{**good, **wrong}) for wrong in bad]
    tokens += [jwt.encode({**good, "iss": forger.address, "sub": "me"}, "", "none"), "", "a.b.c"]
    for token in tokens:
        with pytest.raises(Unauthorized):
            ForgedAnswers(issuer, token).person(attempt, "code")


def test_an_html_page_in_place_of_a_document_is_the_providers_fault(
    forger: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, token = b"<html>Back soon</html>", forger.token(aud="pages")
    monkeypatch.setitem(forger.others, "/.well-known/openid-configuration", page)
    issuer = Issuer(forger.address, GROUPS)
    with monkeypatch.context() as patch:
        patch.setitem(forger.others, "/keys", page)
        with pytest.raises(StorageError):
            issuer.claims_of(token, "pages")
    assert issuer.claims_of(token, "pages")["sub"] == "me"


def test_the_openid_connect_document_is_preferred(forger: AuthorizationServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 8414's document need not have the userinfo endpoint, where the groups may be."""
    metadata = {**forger.documents()["/.well-known/oauth-authorization-server"], "userinfo_endpoint": "https://there"}
    monkeypatch.setitem(forger.others, "/.well-known/openid-configuration", metadata)
    assert "userinfo_endpoint" in Issuer(forger.address).metadata()


async def test_a_person_signs_in_with_a_real_browser(
    page: Page, axe: str, settings: dict[str, Any], provider: IdentityProvider
) -> None:
    """The provider's host name differs (localhost, 127.0.0.1), so browsers treat its cookies as on the web."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    app = build_app(Settings(**{**settings, "public_url": address}))
    with served(app, port):
        for name, end in (("eve", "no access"), ("kim", "/insights")):
            await page.goto(f"{address}/insights")
            await page.get_by_role("link", name="Sign in with your account").click()
            await page.get_by_label("Username").fill(name)
            await page.get_by_label("Password").fill(name * 2)
            await page.get_by_label("Password").press("Enter")
            if end == "no access":
                await expect(page.get_by_role("alert")).to_contain_text("has no access")
                assert not await violations(page, axe)
            else:
                await page.wait_for_url(f"{address}/insights")
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_url(f"{address}/login")


def test_a_sign_in_that_cannot_work_is_reported_at_startup() -> None:
    client = {"oauth_client_id": "pages", "oauth_groups": "staff=write"}
    good = {"public_url": HERE, "oauth_issuer": HERE, "oauth_audience": RESOURCE, **client}
    cases: list[tuple[dict[str, str], str]] = [
        ({"oauth_groups": "staff"}, "'staff' is not a rule; allowed: GROUP=read|write|admin"),
        ({"oauth_groups": "staff=owner"}, "'staff=owner' is not a rule"),
        ({"oauth_issuer": "", "oauth_audience": ""}, "need CTXR_OAUTH_ISSUER"),
        ({"public_url": ""}, "CTXR_OAUTH_CLIENT_ID needs CTXR_PUBLIC_URL"),
        ({"oauth_groups": ""}, "CTXR_OAUTH_CLIENT_ID needs CTXR_OAUTH_GROUPS"),
    ]
    for given, expected in cases:
        with pytest.raises(InvalidRequest) as caught:
            read_settings(**{**good, **given})
        assert expected in caught.value.details

"""Sign a person in by OpenID Connect: the authorization code flow with PKCE, at the issuer of the settings."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, urlencode

import httpx

from registry.access import Access
from registry.errors import StorageError, Unauthorized

if TYPE_CHECKING:
    from orchestrator.outside.issuer import Issuer  # an optional extra

TIMEOUT_S = 5.0


def _random() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An unfinished sign-in, stored in a cookie, so that only the same browser can complete it."""

    next: str
    state: str = field(default_factory=_random)
    nonce: str = field(default_factory=_random)
    verifier: str = field(default_factory=_random)

    def as_cookie(self) -> str:
        return ".".join((self.state, self.nonce, self.verifier, quote(self.next, safe="")))

    @classmethod
    def from_cookie(cls, cookie: str, state: str) -> Attempt | None:
        """Parse the cookie; None if it is invalid, or `state` belongs to another attempt."""
        parts = cookie.split(".", 3)
        if len(parts) < 4 or not compare_digest(parts[0].encode(), state.encode()):
            return None
        return cls(unquote(parts[3]), *parts[:3])


@dataclass(frozen=True, slots=True)
class Person:
    """A signed-in person; `access` is None if they have no permission here."""

    name: str
    groups: tuple[str, ...]
    access: Access | None


class SignIn:
    """OAuth client of the issuer. The methods block; they raise StorageError if the issuer does not answer."""

    def __init__(self, issuer: Issuer, client_id: str, client_secret: str, redirect_uri: str) -> None:
        self._issuer, self._id, self._secret, self._redirect_uri = issuer, client_id, client_secret, redirect_uri

    def address(self, attempt: Attempt) -> str:
        """Return the address of the issuer's sign-in page."""
        page = self._issuer.endpoint("authorization_endpoint")
        knows_groups = "groups" in self._issuer.metadata().get("scopes_supported", ())  # else it may refuse the scope
        params = {
            "response_type": "code",
            "client_id": self._id,
            "redirect_uri": self._redirect_uri,
            "scope": "openid groups" if knows_groups else "openid",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": urlsafe_b64encode(sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{page}{'&' if '?' in page else '?'}{urlencode(params)}"

    def person(self, attempt: Attempt, code: str) -> Person:
        """Exchange the authorization code; raise Unauthorized if the answer is not valid."""
        answer = self._exchange(attempt, code)
        claims = self._issuer.claims_of(str(answer.get("id_token")), self._id)
        if not compare_digest(str(claims.get("nonce")).encode(), attempt.nonce.encode()):
            raise Unauthorized("The token is not valid.", "nonce: it was made for another sign-in")
        if claims.get("azp", self._id) != self._id:
            raise Unauthorized("The token is not valid.", "azp: it was made for another client")
        if "groups" not in claims and "userinfo_endpoint" in self._issuer.metadata():
            claims = {**self._user_info(str(answer.get("access_token")), claims["sub"]), **claims}
        groups = claims.get("groups")
        names = tuple(map(str, groups)) if isinstance(groups, list) else ()
        return Person(f"oauth:{claims['sub']}", names, self._issuer.access_of(claims))

    def _user_info(self, access_token: str, subject: str) -> dict[str, Any]:
        """Return the claims of the userinfo endpoint: some issuers leave groups out of the ID token."""
        claims = self._answer("GET", "userinfo_endpoint", headers={"Authorization": f"Bearer {access_token}"})
        if claims.get("sub") != subject:
            raise Unauthorized("The token is not valid.", "userinfo: it is about another person")
        return claims

    def _exchange(self, attempt: Attempt, code: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "client_id": self._id,
            "code_verifier": attempt.verifier,
        }
        auth_methods = self._issuer.metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if self._secret and "client_secret_basic" in auth_methods:
            auth = quote_plus(self._id), quote_plus(self._secret)  # RFC 6749, 2.3.1
        elif self._secret:
            form["client_secret"] = self._secret
        return self._answer("POST", "token_endpoint", data=form, auth=auth)

    def _answer(self, method: str, endpoint: str, **request: Any) -> dict[str, Any]:
        address = self._issuer.endpoint(endpoint)
        try:
            answer = httpx.request(method, address, timeout=TIMEOUT_S, **request)
            found = answer.json()
        except (httpx.HTTPError, ValueError) as exc:
            raise StorageError("The issuer of tokens cannot be reached.", f"{address}: {exc}") from exc
        if not answer.is_success or not isinstance(found, dict):
            raise Unauthorized("The issuer refused the request.", f"{address}: {answer.status_code} {str(found)[:200]}")
        return found

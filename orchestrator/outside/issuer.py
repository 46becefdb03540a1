"""Verify the JWTs of an OAuth authorization server, and map their claims to access.

Imported only if the settings name an issuer, because it needs the extra `oauth`.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from json import JSONDecodeError
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import jwt

from orchestrator.outside.sign_in import TIMEOUT_S
from registry.access import Access, Level
from registry.errors import StorageError, Unauthorized
from registry.settings import GROUP_RULE

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Only algorithms with a public key: a shared secret would let us sign tokens."""
REQUIRED = ("exp", "iss", "aud", "sub")
SCOPES = {f"registry:{level}": level for level in (Level.READ, Level.WRITE, Level.ADMIN)}
"""Known scopes and their levels; of several the highest applies."""
CHANNELS, PROJECTS = "registry_channels", "registry_projects"
"""Claims that restrict a token to channels or projects, like `ctxr token create`."""
GROUPS = "groups"
_RANK = list(Level).index


class Issuer:
    """An authorization server, with its published metadata and keys.

    `groups`: the rules of CTXR_OAUTH_GROUPS. The methods block; they raise StorageError if the server does not answer.
    """

    def __init__(self, address: str, groups: Sequence[str] = ()) -> None:
        self.address, self._groups = address, groups
        self._metadata: dict[str, Any] = {}
        self._keys: jwt.PyJWKClient | None = None

    def claims_of(self, token: str, audience: str) -> dict[str, Any]:
        """Return a token's claims; raise Unauthorized if it is invalid or made for another audience."""
        try:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(self.endpoint("jwks_uri"), timeout=TIMEOUT_S)
            key = self._keys.get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=audience,
                issuer=[self.address, f"{self.address}/"],
                leeway=30,
                options={"require": list(REQUIRED)},
            )
        except (jwt.PyJWKClientConnectionError, JSONDecodeError) as exc:  # an error page instead of the keys
            raise unreachable_error(str(exc)) from exc
        except jwt.PyJWTError as exc:
            raise Unauthorized("The token is not valid.", str(exc)) from exc
        return claims

    def access_of(self, claims: Mapping[str, Any]) -> Access | None:
        """Return the access for these claims; None without one of our scopes or groups.

        If there are rules for groups, they decide the level, and a scope can only lower it.
        """
        claim = claims.get("scope", claims.get("scp"))
        names = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else ()
        scopes = [scope for name, scope in SCOPES.items() if name in names]
        level: Level | None = max(scopes, key=_RANK, default=None)
        allowed: tuple[str, ...] = ()
        if self._groups:
            in_groups, allowed = self._group_access(claims)
            level = min(filter(None, [level, in_groups]), key=_RANK) if in_groups else None
        channels, projects = _claim_texts(claims, CHANNELS), _claim_texts(claims, PROJECTS)
        if level is None or channels is None or projects is None:
            return None
        name = f"oauth:{claims['sub']}"
        return Access(name, level, channels, projects or allowed, owner=name)

    def _group_access(self, claims: Mapping[str, Any]) -> tuple[Level | None, tuple[str, ...]]:
        """Return the highest level of the person's groups, and the projects it applies to; (): all."""
        groups = _claim_texts(claims, GROUPS) or ()
        rules = [found for rule in self._groups if (found := GROUP_RULE.fullmatch(rule)) and found["group"] in groups]
        level = max((Level(rule["level"]) for rule in rules), key=_RANK, default=None)
        projects = [rule["project"] for rule in rules if rule["level"] == level]
        return level, () if None in projects else tuple(projects)

    def endpoint(self, name: str) -> str:
        """Return an address of the metadata. A private address is refused unless its host is the issuer's."""
        address = str(self.metadata().get(name))
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise unreachable_error(f"{name}: {address} is not a web address")
        if parts.hostname != urlsplit(self.address).hostname and _is_private(parts.hostname):
            raise unreachable_error(f"{name}: {address} is a private address, and {self.address} is not")
        return address

    def metadata(self) -> dict[str, Any]:
        if not self._metadata:
            self._metadata = self._fetch_metadata()
        return self._metadata

    def _fetch_metadata(self) -> dict[str, Any]:
        parts = urlsplit(self.address)
        well_known = f"/.well-known/oauth-authorization-server{parts.path}"  # RFC 8414; userinfo is optional there
        rfc_address = urlunsplit((parts.scheme, parts.netloc, well_known, "", ""))
        for address in (f"{self.address}/.well-known/openid-configuration", rfc_address):
            try:
                answer = httpx.get(address, timeout=TIMEOUT_S)
                found: dict[str, Any] = answer.json() if answer.is_success else {}
            except httpx.HTTPError as exc:
                raise unreachable_error(f"{address}: {exc}") from exc
            except ValueError:  # an HTML page
                continue
            if "jwks_uri" in found and str(found.get("issuer")).rstrip("/") == self.address:
                return found
        raise unreachable_error(f"{self.address} publishes no metadata of an issuer of that name")


def unreachable_error(why: str) -> StorageError:
    """Return the error for an issuer that does not answer correctly."""
    return StorageError("The issuer of tokens cannot be reached.", f"CTXR_OAUTH_ISSUER: {why}")


def _claim_texts(claims: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """Return the texts of a claim, () if it is missing; None if it is malformed, so that no restriction is ignored."""
    if name not in claims:
        return ()
    value = claims[name]
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and bool(value)
    return tuple(value) if is_list and all(isinstance(one, str) and one.isprintable() for one in value) else None


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".internal"))

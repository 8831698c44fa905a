"""Who may call: keys in ``X-API-Key``, ``X-API-Keys`` or ``Authorization: Bearer``, compared in constant time."""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable

from fastapi import Request

from verilog_taskapp.errors import MissingServerKey, Unauthorized
from verilog_taskapp.settings import Settings

MISSING_KEY_MESSAGE = "ENVIRONMENT_API_KEY is not configured on the server: set it, or start with --no-auth on loopback"


def is_loopback(host: str) -> bool:
    """Whether `host` stands for this machine: as an address to bind, or as a caller's."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Keyring:
    """The server's keys, as digests."""

    def __init__(self, settings: Settings) -> None:
        if settings.no_auth and not is_loopback(settings.host):
            raise ValueError(f"serving without keys needs a loopback host, not {settings.host}")
        self._digests = tuple(_digest(key) for key in settings.server_keys)
        self.open = settings.no_auth

    @property
    def configured(self) -> bool:
        """Whether protected routes can be opened at all."""
        return self.open or bool(self._digests)

    def admits(self, request: Request) -> bool:
        """Whether a request carries a valid key, or none is needed: by callers from this machine only."""
        if self.open and request.client is not None and is_loopback(request.client.host):
            return True
        return self._any_valid(_sent_keys(request))

    def _any_valid(self, sent: Iterable[str]) -> bool:
        valid = False
        for candidate in sent:
            digest = _digest(candidate)
            for known in self._digests:  # no early end: the time must not tell which key was close
                valid |= hmac.compare_digest(digest, known)
        return valid


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _sent_keys(request: Request) -> list[str]:
    headers = request.headers
    keys = headers.getlist("x-api-key")
    for joined in headers.getlist("x-api-keys"):
        keys += joined.split(",")
    for value in headers.getlist("authorization"):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            keys.append(token)
    return [key.strip() for key in keys if key.strip()][:32]


async def require_key(request: Request) -> None:
    """Dependency of protected routes. Raises `MissingServerKey` (503) or `Unauthorized` (401)."""
    keyring: Keyring = request.app.state.keyring
    if not keyring.configured:
        raise MissingServerKey(MISSING_KEY_MESSAGE)
    if not keyring.admits(request):
        raise Unauthorized("a valid key is needed: send X-API-Key or Authorization: Bearer")

"""Where the model is: the URL of a chat-completions endpoint, whether it may be contacted, and the key it gets."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx
from pydantic import SecretStr

from verilog_taskapp.errors import InferenceHostRefused, InferenceKeyMissing, InvalidRequest
from verilog_taskapp.settings import Settings

DEFAULT_URL = "https://api.groq.com/openai/v1/chat/completions"
GROQ_HOST = "api.groq.com"
OPENAI_HOST = "api.openai.com"
MAX_URL_CHARS = 8192

Vendor = Literal["openai", "groq"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Letters, digits, dot, hyphen, underscore or a bracketed IPv6 address, then a port: what every URL parser reads alike.
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SENDABLE = re.compile(r"[!-~]+")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_VENDOR_VARIABLES = {GROQ_HOST: "GROQ_API_KEY", OPENAI_HOST: "OPENAI_API_KEY"}

_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog"})
_NEVER_CONTACTED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # RFC 3927 link-local; the metadata service of AWS, GCP, Azure, OpenStack, ...
        "fe80::/10",  # RFC 4291 link-local
        "fd00:ec2::/32",  # AWS: metadata (::254), DNS, time
        "fd20:ce::254/128",  # GCP metadata on IPv6-only machines
        "100.100.100.200/32",  # Alibaba Cloud metadata
        "168.63.129.16/32",  # Azure's wire server
        "192.0.0.192/32",  # Oracle Cloud metadata
    )
)
# IPv6 networks whose last 32 bits are an IPv4 address that the packet may end up at.
_CARRIES_IPV4 = tuple(
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)


@dataclass(frozen=True)
class Endpoint:
    """One URL to send requests to, with the key that belongs to its host."""

    url: str
    """Complete, query string included."""
    key: SecretStr | None = None
    """Sent as a bearer token; None: no credentials."""

    def __post_init__(self) -> None:
        # An unsendable key would come back inside the HTTP library's error message.
        if self.key is not None and not _SENDABLE.fullmatch(self.key.get_secret_value()):
            raise ValueError("the key holds characters that cannot be sent in an HTTP header")

    @property
    def label(self) -> str:
        """Host and port for messages: no path, no query, nothing secret."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


def normalize_url(url: object, *, default: str = DEFAULT_URL, field: str = "inference_url") -> str:
    """The chat-completions URL meant by `url`, query string and fragment kept; None or blank means `default`.

    A path ending in ``/chat/completions`` stays, ``/v1`` gets ``/chat/completions``, ``/chat`` gets ``/completions``,
    anything else gets ``/v1/chat/completions``; a trailing slash makes no difference.
    Raises InvalidRequest, naming `field`, for anything that is not an http(s) URL of a plain host and port. The message
    does not repeat the URL, which may hold a password.
    """
    if url is None:
        url = ""
    if not isinstance(url, str):
        raise _invalid(field, f"must be a string, not {type(url).__name__}")
    parts = _split(url.strip() or default, field)
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        pass
    elif path.endswith("/v1"):
        path += "/chat/completions"
    elif path.endswith("/chat"):
        path += "/completions"
    else:
        path += "/v1/chat/completions"
    return _join(parts, path, field)


def check_host(url: str, settings: Settings) -> None:
    """Refuse a URL by its text: not on the allow-list, or a link-local or metadata address in any spelling.

    The origin of the operator's own `inference_url` needs no entry in the list. What a *name* resolves to is checked
    where the connection is made (`guard.GuardedTransport`). Raises InferenceHostRefused, or InvalidRequest for no URL.
    """
    parts = _split(url, "inference_url")
    host = _host(parts)
    if host in _METADATA_NAMES or is_never_contacted(host):
        raise refused(host, "is a link-local or metadata address, which this server never contacts")
    if not settings.inference_hosts or _is_listed(host, settings.inference_hosts):
        return
    if _origin(parts) != _origin(_split(settings.inference_url, "inference_url")):
        raise refused(host, "is not in VERILOG_INFERENCE_HOSTS, the hosts this server may contact for a request")


def key_for(url: str, settings: Settings, api_key_env: str | None = None) -> SecretStr | None:
    """The key for the host of `url`: the vendor's own, else the variable that `api_key_env` names, else None.

    Only names in `settings.inference_key_envs` count, and the vendors' variables go to the vendors alone.
    Raises InferenceKeyMissing, naming the variable, if the key is absent, not permitted or not sendable; InvalidRequest
    if a vendor's key would travel in the clear.
    """
    parts = _split(url, "inference_url")
    vendor_key = _vendor_key(parts, settings)
    if vendor_key is not None:
        return vendor_key
    if not api_key_env:
        return None
    if api_key_env in _VENDOR_VARIABLES.values():
        raise _no_key(
            api_key_env, f"{api_key_env} is sent to its vendor's own host only; give this host's key another name"
        )
    if api_key_env not in settings.inference_key_envs:
        hint = "a request may not name this variable: add it to VERILOG_INFERENCE_KEY_ENVS on the server to allow it"
        raise _no_key(api_key_env, f"api_key_env: {hint}")
    return _sendable(api_key_env, settings.named_keys.get(api_key_env), _host(parts))


def endpoint_for(url: object, settings: Settings, api_key_env: str | None = None) -> Endpoint:
    """The endpoint a request asks for (None or blank: the server's own), checked and with its key.

    Raises InvalidRequest, InferenceHostRefused or InferenceKeyMissing.
    """
    complete_url = normalize_url(url, default=settings.inference_url)
    check_host(complete_url, settings)
    return Endpoint(complete_url, key_for(complete_url, settings, api_key_env))


def proxy_endpoint(settings: Settings, vendor: Vendor, path: Literal["chat/completions", "models"]) -> Endpoint:
    """The operator's upstream of ``/proxy/v1`` or ``/proxy/groq/v1``; the allow-list is for requests, not for this.

    Raises InferenceKeyMissing when the host's key, or the one named by `proxy_api_key_env`, is absent; InvalidRequest,
    naming the setting, when its URL is none.
    """
    base, field = (
        (settings.proxy_groq_url, "VERILOG_PROXY_GROQ_URL")
        if vendor == "groq"
        else (settings.proxy_openai_url, "VERILOG_PROXY_OPENAI_URL")
    )
    parts = _split(base.strip(), field)
    url = _join(parts, f"{parts.path.rstrip('/')}/{path}", field)
    key = _vendor_key(parts, settings)
    variable = settings.proxy_api_key_env if vendor == "openai" else None
    if key is None and variable:
        key = _sendable(variable, settings.named_keys.get(variable), _host(parts))
    return Endpoint(url, key)


@lru_cache(maxsize=1024)
def is_never_contacted(address: str) -> bool:
    """Whether `address` is a link-local or metadata address; False for names, which must be resolved first.

    Decimal, octal, hexadecimal and short IPv4 forms count, and so does an IPv4 address carried inside an IPv6 one.
    """
    parsed = _parse_address(address)
    return parsed is not None and any(each in network for each in _meanings(parsed) for network in _NEVER_CONTACTED)


def refused(host: str, why: str) -> InferenceHostRefused:
    """The fault for a host that may not be contacted."""
    return InferenceHostRefused(f"inference_url: the host {host!r} {why}", extras={"host": host})


def _split(url: str, field: str) -> SplitResult:
    if len(url) > MAX_URL_CHARS:
        raise _invalid(field, f"is longer than {MAX_URL_CHARS} characters")
    if _UNPRINTABLE.search(url):
        raise _invalid(field, "holds a space or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _invalid(field, "is not a URL with a valid host and port") from None
    if parts.scheme not in ("http", "https"):
        raise _invalid(field, "must start with http:// or https://")
    if "@" in parts.netloc:
        raise _invalid(field, "must not hold a user name or password; use api_key_env")
    if not _AUTHORITY.fullmatch(parts.netloc) or port == 0:
        raise _invalid(field, "needs a plain host name or address, with a port if any; write other scripts in punycode")
    return parts


def _join(parts: SplitResult, path: str, field: str) -> str:
    url = urlunsplit(parts._replace(netloc=parts.netloc.lower(), path=path))
    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        raise _invalid(field, "is not a valid URL") from None
    return url


def _invalid(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{field} {problem}", extras={"errors": [{"field": field, "message": problem}]})


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".")


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, _host(parts), parts.port or (443 if parts.scheme == "https" else 80)


def _is_listed(host: str, patterns: tuple[str, ...]) -> bool:
    for pattern in patterns:
        wanted = pattern.lower().strip("[]").rstrip(".")
        if wanted in ("*", host) or (wanted.startswith("*.") and host.endswith(wanted[1:])):
            return True
    return False


def _vendor_key(parts: SplitResult, settings: Settings) -> SecretStr | None:
    host = _host(parts)
    if host not in _VENDOR_VARIABLES:
        return None
    if parts.scheme != "https":
        raise _invalid("inference_url", f"must be https for {host}: the key would travel in the clear")
    key = settings.groq_api_key if host == GROQ_HOST else settings.openai_api_key
    return _sendable(_VENDOR_VARIABLES[host], key, host)


def _sendable(variable: str, key: SecretStr | None, host: str) -> SecretStr:
    value = key.get_secret_value().strip() if key is not None else ""
    if not value:
        raise _no_key(variable, f"{variable} is not set on the server, and {host} needs it")
    if not _SENDABLE.fullmatch(value):
        raise _no_key(variable, f"{variable} holds characters that cannot be sent in an HTTP header")
    return SecretStr(value)


def _no_key(variable: str, message: str) -> InferenceKeyMissing:
    return InferenceKeyMissing(message, extras={"variable": variable})


def _parse_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        pass
    # What the C library, and so a connect, takes for IPv4: 2852039166, 0xa9fea9fe, 0251.0376.0xa9fe, 169.254.43518.
    if not re.fullmatch(r"[0-9A-Fa-fxX.]+", text):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except OSError:
        return None


def _meanings(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    carried: list[Address] = [
        ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) for network in _CARRIES_IPV4 if address in network
    ]
    if address.sixtofour is not None:
        carried.append(address.sixtofour)
    return [address, *carried]

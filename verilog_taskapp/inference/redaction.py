"""Keeping keys out of what an upstream's answer is quoted for.

Servers like to repeat the key they were given, whole or in part ("Incorrect API key provided: sk-ab***yz"), so the text
of an error is never passed on as it came.
"""

import re

from pydantic import SecretStr

REDACTED = "[redacted]"
_TOKEN = re.compile(r"[^\s\"'`,;:=()\[\]{}<>\\]{4,}")
_KEY_SHAPED = re.compile(r"(?<![A-Za-z0-9])(?:sk|gsk|xai|hf|nvapi|csk)[-_][A-Za-z0-9_\-]{8,}", re.IGNORECASE)
_DEPTH = 32


def redact(text: str, key: SecretStr | None) -> str:
    """`text` without `key`, without its beginning or end, and without anything masked or shaped like a vendor's key."""
    secret = key.get_secret_value() if key is not None else ""
    if secret:
        text = text.replace(secret, REDACTED)

    def replaced(match: re.Match[str]) -> str:
        token = match.group()
        shows_part = len(secret) >= 8 and (secret[:6] in token or token.rstrip(".!?").endswith(secret[-4:]))
        return REDACTED if shows_part or "***" in token or _KEY_SHAPED.search(token) else token

    return _TOKEN.sub(replaced, text)


def redact_json(value: object, key: SecretStr | None, depth: int = _DEPTH) -> object:
    """A JSON value with every string of it redacted, names of fields included; too deep parts are left out."""
    if isinstance(value, str):
        return redact(value, key)
    if depth == 0 and isinstance(value, dict | list):
        return None
    if isinstance(value, dict):
        return {redact(str(name), key): redact_json(item, key, depth - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [redact_json(item, key, depth - 1) for item in value]
    return value


def excerpt(text: str, key: SecretStr | None, limit: int) -> str:
    """At most `limit` characters of `text` on one line, redacted before it is cut so that no part of a key survives."""
    wide = redact(text[: limit * 8], key)
    if len(text) > limit * 8 and key is not None:
        wide = wide[: -len(key.get_secret_value())]  # the slice may have gone through a key
    line = " ".join(wide.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"

"""Whether the Hugging Face hub answers, found out in seconds.

Its client retries an unreachable hub for 23 s when connections are refused, and for minutes when they hang
(huggingface_hub 2.4: six attempts with growing waits, 10 s time-out each). One short request first saves that.
"""

import http.client
import ssl
import urllib.error
import urllib.request

HUB_PROBE_S = 5.0
"""Time-out of the connection and of each read."""


def hub_answers(endpoint: str, timeout_s: float = HUB_PROBE_S) -> bool:
    """Whether anything at `endpoint` (an http or https URL) speaks HTTP; proxies of the environment are used."""
    if not endpoint.startswith(("http://", "https://")):
        return False
    request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 - the scheme is checked above
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # reached; the client has certificates of its own
    except (OSError, http.client.HTTPException):
        return False

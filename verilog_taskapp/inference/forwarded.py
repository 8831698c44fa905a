"""An upstream's answer that is passed on: status and headers at once, the body as it arrives."""

from collections.abc import AsyncGenerator, Mapping
from typing import Self

import httpx

from verilog_taskapp.errors import InferenceFailed
from verilog_taskapp.inference.endpoint import Endpoint

MAX_ANSWER_BYTES = 16 * 1024**2
"""Longest answer that is held in memory."""


class Forwarded:
    """An answer whose body is still to be read.

    Whoever has one closes it; reading the body to its end, an error and a cancelled read do so too.
    """

    def __init__(self, response: httpx.Response, target: Endpoint) -> None:
        self._response = response
        self._target = target
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connection up, on which the upstream stops generating. Idempotent."""
        await self._response.aclose()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it arrives, once. Raises InferenceFailed when it breaks off, goes silent or cannot be decoded."""
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise InferenceFailed(
                f"{self._target.label} broke off its answer: {type(error).__name__}",
                extras={"upstream_status": self.status},
            ) from error
        finally:
            await self.aclose()

    async def read(self, limit_bytes: int = MAX_ANSWER_BYTES) -> bytes:
        """The whole body, then closed. Raises InferenceFailed as `chunks` does, and for more than `limit_bytes`."""
        received = bytearray()
        try:
            async for chunk in self.chunks():
                received += chunk
                if len(received) > limit_bytes:
                    raise InferenceFailed(
                        f"{self._target.label} answered with more than {limit_bytes} bytes",
                        extras={"upstream_status": self.status},
                    )
        finally:
            await self.aclose()
        return bytes(received)

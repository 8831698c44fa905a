"""A stand-in for Modal's control plane: it says yes to everything and remembers what it was asked for."""

import socket
from typing import Any

from grpclib.const import Handler
from grpclib.server import Server, Stream
from modal_proto import api_grpc, api_pb2

BUILDER_VERSION = "2025.06"
PREFIXES = {
    "app_id": "ap",
    "environment_id": "en",
    "function_id": "fu",
    "image_id": "im",
    "mount_id": "mo",
    "secret_id": "st",
}


class ControlPlane:
    """An async context manager that listens on a port of this machine."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self._server = Server([self])
        self._listener = socket.create_server(("127.0.0.1", 0))

    async def __aenter__(self) -> "ControlPlane":
        await self._server.start(sock=self._listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """For ``MODAL_SERVER_URL``."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def asked(self, method: str) -> list[Any]:
        """The requests of one method, in their order."""
        return [request for name, request in self.requests if name == method]

    def __mapping__(self) -> dict[str, Handler]:
        base = api_grpc.ModalClientBase
        interface = type("Interface", (base,), dict.fromkeys(vars(base)["__abstractmethods__"]))  # read for its types
        return {
            path: Handler(self._answer(path.rpartition("/")[2], known), *known[1:])
            for path, known in interface().__mapping__().items()
        }

    def _answer(self, method: str, known: Handler) -> Any:
        async def answer(stream: Stream[Any, Any]) -> None:
            self.requests.append((method, await stream.recv_message()))
            await stream.send_message(self._reply(method, known.reply_type()))

        return answer

    def _reply(self, method: str, reply: Any) -> Any:
        for field in reply.DESCRIPTOR.fields:
            if field.name.endswith("_id") and field.type == field.TYPE_STRING:
                setattr(reply, field.name, f"{PREFIXES.get(field.name, 'xx')}-{len(self.requests)}")
        if method == "ImageGetOrCreate":
            reply.result.status = api_pb2.GenericResult.GENERIC_STATUS_SUCCESS
        elif method == "MountPutFile":
            reply.exists = True
        elif method == "EnvironmentGetOrCreate":
            reply.metadata.settings.image_builder_version = BUILDER_VERSION
        return reply

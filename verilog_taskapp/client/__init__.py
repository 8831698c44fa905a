"""The service from Python, typed with the wire's own models; needs httpx and pydantic and nothing of the server.

    Client        asynchronous: rollouts, batches, sessions, what the service offers
    Session       one episode step by step; an async context manager that always closes it
    SyncClient    the same for code without an event loop, usable from several threads
    SyncSession

A fault arrives as the exception of `verilog_taskapp.errors` that the service raised; what only a client can meet (no
connection, an unreadable answer, no time left) is in `verilog_taskapp.client.errors`.
"""

from verilog_taskapp.client.api import Client
from verilog_taskapp.client.batch import BatchAnswer
from verilog_taskapp.client.blocking import SyncClient, SyncSession
from verilog_taskapp.client.errors import DeadlinePassed, ServiceUnreachable, UnreadableAnswer
from verilog_taskapp.client.session import Session, SessionNotOpen, tool_messages

__all__ = [
    "BatchAnswer",
    "Client",
    "DeadlinePassed",
    "ServiceUnreachable",
    "Session",
    "SessionNotOpen",
    "SyncClient",
    "SyncSession",
    "UnreadableAnswer",
    "tool_messages",
]

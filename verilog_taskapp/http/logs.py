"""Structured logs: one JSON object a line, or text for people. Neither ever holds a header or a body."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

from verilog_taskapp.http.middleware import request_id
from verilog_taskapp.settings import Settings


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, request id, process id, and the facts given as ``extra={"facts": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            "pid": record.process,
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextFormatter(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, or more with an exception."""
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()} {facts}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(settings: Settings) -> None:
    """Send all logs to stderr in the chosen format; the HTTP client's lines, which hold URLs, are dropped."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("httpx", "httpcore", "aiohttp", "datasets", "urllib3", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = name != "uvicorn.access"

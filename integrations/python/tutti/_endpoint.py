"""A page for Prometheus to scrape."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tutti._errors import InvalidArgument
from tutti._metrics import prometheus


class _Page(BaseHTTPRequestHandler):
    timeout = 10  # seconds, for who connects and says nothing

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        """Any path but /metrics is none."""
        known = self.path.split("?")[0] == "/metrics"
        text = prometheus() if known else "tutti's metrics are at /metrics\n"
        body = text.encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        """A job's standard error is no place for scrapes."""


class Endpoint:
    """What serve_prometheus() has opened. As a context manager it is closed at the end; a process that ends closes
    it too."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._server = ThreadingHTTPServer((host, port), _Page)
        except (OSError, OverflowError) as error:
            raise InvalidArgument(
                f"serve_prometheus cannot listen at {host}:{port}: {error}. Each process of a host needs a "
                "port of its own: add the local rank, or give 0 for any that is free"
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="tutti metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """At which it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Once more does no harm."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def serve_prometheus(port: int, host: str = "127.0.0.1") -> Endpoint:
    """Serves prometheus() at http://host:port/metrics, from a thread of its own, until it is closed. It is plain
    HTTP without a password: only this machine can reach the default host, and "0.0.0.0" is for networks that may
    know. Port 0: any that is free. Raises InvalidArgument where it cannot listen there."""
    return Endpoint(host, port)

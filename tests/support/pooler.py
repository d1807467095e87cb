"""A relay in front of a PostgreSQL that refuses start-up options as connection poolers do, and may ask for logins of
the form `role.project`."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Any

KNOWN = {b"user", b"database", b"client_encoding", b"application_name", b"datestyle", b"timezone"}
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


class Pooler:
    """Listens on 127.0.0.1; use it in a `with`, and connect with `params`."""

    def __init__(self, server: dict[str, Any], project: str = "") -> None:
        self._server = server
        self._project = project.encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.params = {**server, "host": "127.0.0.1", "port": self._listener.getsockname()[1]}
        self.refused: list[bytes] = []

    def __enter__(self) -> Pooler:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, self._upstream() as server:
            while True:
                head = client.recv(8, socket.MSG_WAITALL)
                length, code = struct.unpack("!ii", head)
                if code not in (SSL_REQUEST, GSS_REQUEST):
                    break
                client.sendall(b"N")
            body = client.recv(length - 8, socket.MSG_WAITALL)
            names = set(body.split(b"\0")[::2]) - {b""} if code == 196608 else set()
            if unknown := names - KNOWN:
                self.refused += sorted(unknown)
                client.sendall(_error(b"unsupported startup parameter: " + b", ".join(sorted(unknown))))
                return
            if names and self._project:
                ending = b"." + self._project + b"\0"
                if ending not in body:
                    client.sendall(_error(b"Tenant or user not found"))
                    return
                body = body.replace(ending, b"\0", 1)
                head = struct.pack("!ii", len(body) + 8, code)
            server.sendall(head + body)
            threading.Thread(target=_copy, args=(server, client), daemon=True).start()
            _copy(client, server)

    def _upstream(self) -> socket.socket:
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(f"{self._server['host']}/.s.PGSQL.{self._server['port']}")
        return upstream


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _error(message: bytes) -> bytes:
    fields = b"SFATAL\0C08P01\0M" + message + b"\0\0"
    return b"E" + struct.pack("!i", len(fields) + 4) + fields

"""A package index and a model hub on this machine, over HTTP, with contents a test makes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Files:
    """What the server has, by path, and which paths it was asked for."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def add_wheel(self, package: str, files: Mapping[str, bytes]) -> None:
        """Put a package into the index, with these files."""
        module = package.replace("-", "_")
        name = f"{module}-1.0-py3-none-any.whl"
        info = f"{module}-1.0.dist-info"
        members = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{n},sha256={_digest(c)},{len(c)}\n" for n, c in members.items())
        members[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for member, data in members.items():
                archive.writestr(member, data)
        self.content[f"/files/{name}"] = packed.getvalue()
        self.content[f"/simple/{package}/"] = f'<a href="/files/{name}">{name}</a>'.encode()


@contextlib.contextmanager
def serve_files() -> Iterator[Files]:
    """A server of `Files` on 127.0.0.1, for as long as the block."""
    files = Files()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = files.content.get(self.path)
            if self.command == "GET":
                files.asked.append(self.path)
            self.send_response(404 if body is None else 200)
            body = body or b""
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    files.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

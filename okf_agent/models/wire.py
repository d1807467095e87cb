"""The HTTP side of a model call: what the server really sent, and no more of it than a reply can be.

LiteLLM gives a status of its own to much that no server said. What is retried is decided by what was heard here.
"""

from __future__ import annotations

import atexit
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

MOST_BYTES = 32_000_000
"""Bytes of one reply, unpacked. The longest replies of models have a few hundred thousand."""
KEPT_BYTES = 1_000_000
"""Bytes of a reply that are kept for whoever has to explain it."""


@dataclass
class Heard:
    """What one model call heard of a server."""

    asked: bool = False
    """A request was sent through here."""
    status: int | None = None
    body: bytearray = field(default_factory=bytearray)
    """The beginning of what the server sent."""
    whole: bool = False
    """The server sent everything it had promised."""
    too_large: bool = False


hearing: ContextVar[Heard] = ContextVar("hearing")
"""What the call under way hears; one for each try."""


class TooLarge(httpx.TransportError):
    """A reply that is longer than any reply of a model."""


class Transport(httpx.BaseTransport):
    """The transport of every HTTP client that LiteLLM makes. It asks for plain text and unpacks what comes packed."""

    def __init__(self, verify: Any) -> None:
        # A client, and no transport of httpx, because it knows the proxies of the environment.
        self._client = httpx.Client(verify=verify)
        atexit.register(self._client.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        heard = hearing.get(None) or Heard()
        heard.asked, heard.status, heard.whole = True, None, False
        heard.body.clear()
        request.headers["Accept-Encoding"] = "identity"
        response = self._client.send(request, stream=True, auth=None, follow_redirects=False)
        heard.status = response.status_code
        headers = response.headers.copy()
        packed = headers.pop("Content-Encoding", "identity").lower()
        if packed not in ("identity", "gzip", "deflate"):
            response.close()
            raise httpx.DecodingError(f"the reply is packed as {packed}, which was not asked for", request=request)
        if packed != "identity":
            headers.pop("Content-Length", None)
        stream = _Stream(response.stream, packed != "identity", heard)
        return httpx.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)

    def close(self) -> None:
        """Stay open: several clients share this transport, and LiteLLM closes those it drops."""


class _Stream(httpx.SyncByteStream):
    """A reply's bytes as they come, unpacked and counted."""

    def __init__(self, stream: Any, packed: bool, heard: Heard) -> None:
        self._stream = stream
        self._unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None
        self._heard = heard

    def __iter__(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for sent in self._stream:
            piece = self._unpack.decompress(sent, left + 1) if self._unpack else sent
            left -= len(piece)
            if left < 0:
                self._heard.too_large = True
                raise TooLarge(f"the reply has more than {MOST_BYTES:,} bytes")
            self._heard.body += piece[: KEPT_BYTES - len(self._heard.body)]
            yield piece
        self._heard.whole = True

    def close(self) -> None:
        self._stream.close()


def install(litellm: Any) -> None:
    """Let every HTTP client of LiteLLM use one Transport: those it makes itself, and those of OpenAI's library."""
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    if getattr(litellm, "sync_transport", None) is None:
        litellm.sync_transport = Transport(get_ssl_configuration())
        litellm.client_session = httpx.Client(transport=litellm.sync_transport, follow_redirects=True)

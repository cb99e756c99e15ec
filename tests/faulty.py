"""An OpenAI-compatible endpoint on loopback that answers, or fails, as a script says.

    with FaultyServer(in_turn(answers("Paris"), fails(500))) as server:
        ChatModel(base_url=server.url)

A script looks at a request and gives a play: what the server does with the connection. Nothing
here sleeps; what hangs, hangs until the server is closed.
"""

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Self

Pieces = Sequence[tuple[bytes, float]]
"""The bytes of each token with its log-prob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked for."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def question(self) -> str:
        return self.body["messages"][-1]["content"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request's connection, open to be answered or broken."""

    server: "FaultyServer"
    handler: BaseHTTPRequestHandler

    def send(self, head: Mapping[str, str], *pieces: bytes, status: int = 200) -> None:
        """Answer with this head and what follows it, right or wrong."""
        self.server.answered(self.handler)
        self.handler.send_response(status)
        for name, value in head.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        for piece in pieces:
            self.handler.wfile.write(piece)

    def hold(self) -> None:
        """Say nothing more until the server closes."""
        self.server.closing.wait()
        self.end()

    def end(self) -> None:
        self.handler.close_connection = True


Play = Callable[[Exchange], None]
Script = Callable[[Request], Play]


def in_turn(*plays: Play) -> Script:
    """A play for each request; the last one for all that follow."""
    turns = count()
    return lambda request: plays[min(next(turns), len(plays) - 1)]


def body(content: bytes, status: int = 200, **head: str) -> Play:
    """These very bytes, whole."""
    length = {"Content-Type": "application/json", "Content-Length": str(len(content))}
    return lambda exchange: exchange.send({**length, **head}, content, status=status)


def sends(value: object) -> Play:
    """A value as JSON."""
    return body(json.dumps(value).encode())


def answers(text: str, logprob: float = -0.5, **settings: Any) -> Play:
    """A good answer whose tokens are its words, all with one log-prob."""
    return sends(completion(text, words(text, logprob), **settings))


def answers_without_logprobs(text: str) -> Play:
    return sends(completion(text, None))


def answers_in_tokens(text: str, pieces: Pieces) -> Play:
    """An answer with tokens of your own, whether they fit its text or not."""
    return sends(completion(text, pieces))


def fails(status: int, said: str = "no luck", retry_after: str | None = None) -> Play:
    head = {} if retry_after is None else {"Retry-After": retry_after}
    return body(json.dumps({"error": {"message": said}}).encode(), status, **head)


def hangs(exchange: Exchange) -> None:
    """Take the request and never answer."""
    exchange.hold()


def stalls(exchange: Exchange) -> None:
    """Begin to answer and never go on."""
    half = _half()
    exchange.send({"Content-Length": str(2 * len(half))}, half)
    exchange.hold()


def truncates(exchange: Exchange) -> None:
    """Promise more bytes than are sent, and close."""
    half = _half()
    exchange.send({"Content-Length": str(2 * len(half))}, half)
    exchange.end()


def cuts_the_stream(exchange: Exchange) -> None:
    """Send chunks and close in the middle of one."""
    half = _half()
    chunk = b"%x\r\n%s\r\n" % (len(half), half)
    exchange.send({"Transfer-Encoding": "chunked"}, chunk, b"ff\r\nnot 255 bytes")
    exchange.end()


def hangs_up(exchange: Exchange) -> None:
    """Close without a word."""
    exchange.end()


def babbles(exchange: Exchange) -> None:
    """Say something that is not HTTP."""
    exchange.handler.wfile.write(b"I am no web server\r\n\r\n")
    exchange.end()


def completion(
    text: str,
    pieces: Pieces | None,
    *,
    top: int = 2,
    cached: int | None = None,
    usage: dict[str, Any] | None = None,
    finish: str = "stop",
) -> dict[str, Any]:
    """A chat completion as OpenAI documents it; the `top` alternatives include the token itself."""
    counted: dict[str, Any] = {"prompt_tokens": 11, "completion_tokens": len(pieces or ())}
    if cached is not None:
        counted["prompt_tokens_details"] = {"cached_tokens": cached}
    logprobs = None if pieces is None else {"content": [_token(*piece, top) for piece in pieces]}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}
    return {"object": "chat.completion", "choices": [choice], "usage": usage or counted}


def words(text: str, logprob: float) -> Pieces:
    first, *others = text.split(" ")
    return [(word.encode(), logprob) for word in (first, *(f" {word}" for word in others))]


def single_bytes(text: str, logprob: float) -> Pieces:
    """One token for each byte, as a byte-level tokenizer may split a character."""
    return [(bytes([byte]), logprob) for byte in text.encode()]


def _token(piece: bytes, logprob: float, top: int) -> dict[str, Any]:
    own = {"token": piece.decode(errors="replace"), "bytes": list(piece), "logprob": logprob}
    others = [{"token": f"~{n}", "bytes": list(b"~%d" % n), "logprob": logprob - n} for n in range(1, top)]
    return {**own, "top_logprobs": [own, *others][:top]}


def streams(*pieces: str, usage: bool = True) -> Play:
    """An answer in server-sent events, one for each piece."""

    def play(exchange: Exchange) -> None:
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "content": ""},
            *({"content": p} for p in pieces),
        ]
        chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        counted = {"prompt_tokens": 11, "completion_tokens": len(pieces), "total_tokens": 11 + len(pieces)}
        chunks += [{**_chunk([]), "usage": counted}] if usage else []
        events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        head = {"Content-Type": "text/event-stream", "Connection": "close"}
        exchange.send(head, *events, b"data: [DONE]\n\n")
        exchange.end()

    return play


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": choices,
    }


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request; empty if it is none."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _half() -> bytes:
    whole = json.dumps(completion("half an answer", words("half an answer", -0.1))).encode()
    return whole[: len(whole) // 2]


@dataclass(slots=True)
class FaultyServer:
    """Serves a script on loopback from a thread, keeps the requests, and ends with its `with` block."""

    script: Script
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    """The most requests that were open, got and not yet answered, at one time."""
    closing: threading.Event = field(default_factory=threading.Event)
    errors: list[BaseException] = field(default_factory=list)
    _open: set[BaseHTTPRequestHandler] = field(default_factory=set)
    _sockets: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _http: ThreadingHTTPServer = field(init=False)
    _thread: threading.Thread = field(init=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        with self._lock:
            for connection in self._sockets:
                with suppress(OSError):  # the client may be gone
                    connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        if self.errors and failure[0] is None:
            raise AssertionError("the server's script failed") from self.errors[0]

    def take(self, handler: BaseHTTPRequestHandler) -> Play:
        """Note a request and look up what is to be done with it."""
        length = int(handler.headers.get("Content-Length", 0))
        request = Request(
            path=handler.path,
            headers=dict(handler.headers.items()),
            body=_object(handler.rfile.read(length)),
        )
        with self._lock:
            self.requests.append(request)
            self._open.add(handler)
            self.most_at_once = max(self.most_at_once, len(self._open))
            return self.script(request)

    def answered(self, handler: BaseHTTPRequestHandler) -> None:
        """Called before the first byte of an answer, so that no client can ask again before it."""
        with self._lock:
            self._open.discard(handler)

    def connected(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(connection)


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that breaks off is no failure of the server; a script's failure is kept elsewhere."""


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connected(self.connection)

        def do_POST(self) -> None:
            try:
                server.take(self)(Exchange(server, self))
            except ConnectionError:
                self.close_connection = True
            except Exception as error:
                server.errors.append(error)
                self.close_connection = True
            finally:
                server.answered(self)

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
            sends(models)(Exchange(server, self))

        def finish(self) -> None:
            server.disconnected(self.connection)
            with suppress(ConnectionError):
                super().finish()

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return Handler

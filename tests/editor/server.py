"""A client of a YAML language server, over standard input and output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

Answer = Any


class Pipe(Protocol):
    """What the client needs of the server's output."""

    def readline(self) -> bytes: ...
    def read(self, size: int) -> bytes: ...


@dataclass
class Editor:
    """An editor with one workspace open. Places are a line and a column, from 0, as the protocol counts them."""

    process: subprocess.Popen[bytes]
    root: Path
    settings: Mapping[str, Any]
    diagnostics: dict[str, list[Answer]] = field(default_factory=dict)
    _sent: int = 0

    def open(self, name: str, text: str) -> str:
        """Opens a file of the workspace and returns its address."""
        uri = (self.root / name).as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def problems(self, uri: str) -> list[Answer]:
        """Returns what is wrong with a file, after the server has looked at it."""
        while uri not in self.diagnostics:
            self._receive()
        return self.diagnostics[uri]

    def hover(self, uri: str, line: int, column: int) -> str:
        """Returns the text that an editor shows for the place under the mouse."""
        answer = self._ask("textDocument/hover", _place(uri, line, column))
        return str(answer["contents"]["value"]) if answer else ""

    def complete(self, uri: str, line: int, column: int) -> dict[str, Answer]:
        """Returns what the editor offers at a place, by its label."""
        answer = self._ask("textDocument/completion", _place(uri, line, column))
        return {item["label"]: item for item in answer["items"]}

    def start(self) -> None:
        """Greets the server."""
        folder = {"uri": self.root.as_uri(), "name": self.root.name}
        capabilities = {
            "textDocument": {"hover": {"contentFormat": ["markdown"]}},
            "workspace": {"configuration": True, "workspaceFolders": True},
        }
        root = {"rootUri": self.root.as_uri(), "workspaceFolders": [folder]}
        self._ask("initialize", {"processId": None, **root, "capabilities": capabilities})
        self._notify("initialized", {})

    def _ask(self, method: str, params: Mapping[str, Any]) -> Answer:
        self._sent += 1
        number = self._sent
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                return message["result"]

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        message = _read(cast("Pipe", self.process.stdout))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            sections = [item["section"] for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": [self.settings.get(section, {}) for section in sections]})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        return message


def _place(uri: str, line: int, column: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}


def _read(pipe: Pipe) -> dict[str, Any]:
    size = 0
    while (header := pipe.readline().strip()) or not size:
        if not header:
            raise EOFError("the language server has ended")
        name, value = header.split(b":", 1)
        size = int(value) if name.lower() == b"content-length" else size
    message: dict[str, Any] = json.loads(pipe.read(size))
    return message


@contextmanager
def editor(program: Path, root: Path, settings: Mapping[str, Any]) -> Iterator[Editor]:
    """Starts a language server for a folder."""
    command = ["node", str(program), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            opened = Editor(process, root, settings)
            opened.start()
            yield opened
        finally:
            process.kill()

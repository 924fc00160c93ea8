"""A language server for files in which `def NAME` defines, any word uses, and BROKEN is an error.

It needs two seconds for each look at a text with SLOW in it, more than an edit waits.

Arguments: a file that gets a line for each message, and how it behaves (see `MODES`).
"""

import json
import re
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

MODES = {
    "": "answers, counting in UTF-16",
    "utf-8": "counts in bytes",
    "utf-32": "counts in characters",
    "ends": "ends before it answers anything",
    "mute": "never answers",
    "hangs": "never answers after the start",
    "searches": "never answers who uses a name",
    "breaks": "ends at the first question",
    "garbage": "writes something else",
    "errors": "answers questions with errors",
    "busy": "answers each question at first with: the content changed",
    "asks": "asks all kinds of questions at the start",
    "outside": "wants to rename in a file outside the folder",
    "creates": "wants to create a file when it renames",
    "moves": "renames the file, too",
    "strict": "a name is another one in each file",
    "marks": "renames by replacing whole files as they are on the disk, with byte order mark",
    "breaks JSON": "answers questions with something that is not JSON",
    "nonsense": "answers questions about a file with all kinds of nonsense",
    "panics": "ends with a cause and a long stack trace",
    "grows": "takes memory without end",
}
_UNANSWERED = {"mute": "", "hangs": "textDocument/d", "searches": "textDocument/references"}
_PIECES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_NONSENSE = [
    None,
    7,
    {"name": 3},
    {"name": "greet", "range": "everywhere"},
    {"name": "greet", "range": {"start": {"line": -5, "character": 0}, "end": {"line": 1, "character": 0}}},
    {"uri": "file:///a", "range": {"start": {"line": -5, "character": 0}, "end": {}}},
    {"name": "greet", "range": {"start": {"line": float("inf")}, "end": {"line": float("nan")}}},
]


class FakeLanguageServer:
    """Speaks over its standard streams."""

    def __init__(self, log: str, mode: str) -> None:
        self.log = log
        self.mode = mode
        self.encoding = mode if mode in _PIECES else "utf-16"
        self.root = Path()
        self.texts: dict[str, str] = {}
        self.refused: set[int] = set()
        self.memory: list[bytes] = []

    def serve(self) -> None:
        """Answer until the input ends."""
        if self.mode == "garbage":
            sys.stdout.write("Hello, I am a program.\n" * 400)
            sys.stdout.flush()
            time.sleep(60)
        while (message := self._read()) is not None:
            self._note(message)
            method = message.get("method")
            if self.mode == "ends":
                sys.exit("I have no licence")
            if self.mode == "panics":
                sys.exit("error: no toolchain\n\nStack backtrace:\n" + "  7: core::ops::call_once\n" * 20)
            if method and method.startswith(_UNANSWERED.get(self.mode, "-")):
                continue
            if method and "id" in message:
                self._answer(message["id"], method, message.get("params"))
            elif method:
                self._noticed(method, message.get("params"))

    def _answer(self, number, method, params) -> None:
        if method != "initialize" and self.mode == "breaks":
            sys.exit(3)
        if method != "initialize" and self.mode == "errors":
            return self._send(id=number, error={"code": -32603, "message": "I am not in the mood"})
        if method != "initialize" and self.mode == "busy" and number not in self.refused:
            self.refused |= {number + 1}
            return self._send(id=number, error={"code": -32801, "message": "content modified"})
        if method != "initialize" and self.mode == "breaks JSON":
            data = b'{"result": ]'
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
            return sys.stdout.buffer.flush()
        if method != "initialize" and self.mode == "nonsense":
            return self._send(id=number, result=_NONSENSE)
        while method != "initialize" and self.mode == "grows":
            self.memory.append(b"x" * 10_000_000)
        return self._send(id=number, result=getattr(self, "_" + method.rpartition("/")[2].lower())(params))

    def _initialize(self, params):
        self.root = Path(unquote(urlsplit(params["rootUri"]).path))
        if self.mode == "asks":
            self._send(id="a", method="workspace/configuration", params={"items": [{"section": "fake"}, {}]})
            self._send(id="b", method="client/registerCapability", params={"registrations": []})
            self._send(id="c", method="window/showMessageRequest", params={"message": "Pay?", "actions": []})
            self._send(id="d", method="workspace/applyEdit", params={"edit": {}})
            self._send(id="e", method="fake/unheardOf", params=None)
        named = {"positionEncoding": self.encoding} if self.mode in _PIECES else {}
        return {"capabilities": {**named, "textDocumentSync": 1, "renameProvider": True}}

    def _noticed(self, method, params) -> None:
        if method in ("textDocument/didOpen", "textDocument/didChange"):
            item = params["textDocument"]
            changes = params.get("contentChanges")
            self.texts[item["uri"]] = changes[0]["text"] if changes else item["text"]
            for uri in self.texts:
                self._publish(uri, item["version"] if uri == item["uri"] else None)
        elif method == "textDocument/didClose":
            self.texts.pop(params["textDocument"]["uri"], None)

    def _publish(self, uri, version) -> None:
        if "SLOW" in self._text(uri):
            time.sleep(2)
        found = [
            {"range": self._range(self._text(uri), at.start(), at.end()), "severity": 1, "message": at[0]}
            for at in re.finditer(r"BROKEN\w*", self._text(uri))
        ]
        body = {"uri": uri, "diagnostics": found, **({"version": version} if version else {})}
        self._send(method="textDocument/publishDiagnostics", params=body)

    def _documentsymbol(self, params):
        text = self._text(params["textDocument"]["uri"])
        return [
            {
                "name": at[1],
                "kind": 12,
                "range": self._range(text, at.start(), at.end()),
                "selectionRange": self._range(text, at.start(1), at.end(1)),
            }
            for at in re.finditer(r"^def (\w+).*$", text, re.MULTILINE)
        ]

    def _definition(self, params):
        found = self._uses(self._word(params))
        same = params["textDocument"]["uri"] if self.mode == "strict" else ""
        return [one for one in found if one.pop("defines") and one["uri"].endswith(same)]

    def _references(self, params):
        found = self._uses(self._word(params))
        if self.mode == "strict":
            found = [one for one in found if one["uri"] == params["textDocument"]["uri"]]
        return [{"uri": one["uri"], "range": one["range"]} for one in found]

    def _rename(self, params):
        word, new = self._word(params), params["newName"]
        changes: dict[str, list] = {}
        for one in self._uses(word):
            changes.setdefault(one["uri"], []).append({"range": one["range"], "newText": new})
        if self.mode == "outside":
            changes["file:///etc/passwd"] = [next(iter(changes.values()))[0]]
        if self.mode == "marks":
            changes = {uri: [self._whole(uri, word, new)] for uri in changes}
        if self.mode not in ("moves", "creates"):
            return {"changes": changes}
        edits = [
            {"textDocument": {"uri": uri, "version": None}, "edits": each} for uri, each in changes.items()
        ]
        uri = params["textDocument"]["uri"]
        file = {"kind": "rename", "oldUri": uri, "newUri": uri.replace("one.fake", f"{new}.fake")}
        made = {"kind": "create", "uri": (self.root / "new.fake").as_uri()}
        return {"documentChanges": [*edits, made if self.mode == "creates" else file]}

    def _whole(self, uri, word, new):
        text = Path(unquote(urlsplit(uri).path)).read_text("utf-8")
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 10**6, "character": 0}}
        return {"range": whole, "newText": re.sub(rf"(?<!\w){word}(?!\w)", new, text)}

    def _uses(self, word):
        found = []
        for path in sorted(self.root.rglob("*.fake")):
            text = self._text(path.as_uri())
            for at in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
                defines = text[: at.start()].endswith("def ")
                span = self._range(text, at.start(), at.end())
                found.append({"uri": path.as_uri(), "range": span, "defines": defines})
        return found

    def _word(self, params):
        text, position = self._text(params["textDocument"]["uri"]), params["position"]
        line = text.split("\n")[position["line"]]
        codec, width = _PIECES[self.encoding]
        at = len(line.encode(codec)[: position["character"] * width].decode(codec))
        return next(one[0] for one in re.finditer(r"\w+", line) if one.start() <= at < one.end())

    def _range(self, text, start, end):
        return {"start": self._position(text, start), "end": self._position(text, end)}

    def _position(self, text, index):
        before = text[:index]
        codec, width = _PIECES[self.encoding]
        said = before.rpartition("\n")[2]
        return {"line": before.count("\n"), "character": len(said.encode(codec)) // width}

    def _text(self, uri):
        if uri in self.texts:
            return self.texts[uri]
        return Path(unquote(urlsplit(uri).path)).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")

    def _note(self, message) -> None:
        with Path(self.log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")

    def _read(self):
        length = 0
        while line := sys.stdin.buffer.readline().strip():
            length = int(line.partition(b":")[2])
        return json.loads(sys.stdin.buffer.read(length)) if length else None

    def _send(self, **message) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    FakeLanguageServer(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "").serve()

"""A language server that plays what its arguments say, for tests.

It knows names by `def NAME`, and finds a fault in each line with the word WRONG. Arguments:
    pull          diagnostics are asked for, not pushed
    utf8          columns are counted in bytes
    silent        it says nothing of files
    deaf          it never answers requests but `initialize`
    mute          it answers nothing at all
    others        with each file it says what is wrong in other ones, and what was in an older text
    dies          it ends with the first file
    noise         it writes something that is no message
    flood         it writes such things without end
    odd           its messages have values that the protocol does not have
    stuck         it reads no more than `initialize`
    late          it says what is wrong when the file `go` is there
    asks          it asks its client for settings first, and for a change of a file
"""

import json
import sys
import threading
import time
from pathlib import Path

WORDS = set(sys.argv[1:])
TEXTS = {}
VERSIONS = {}


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with LOCK:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        sys.stdout.buffer.flush()


LOCK = threading.Lock()


def read():
    length = 0
    while line := sys.stdin.buffer.readline():
        if line == b"\r\n":
            return json.loads(sys.stdin.buffer.read(length))
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return None


def units(text):
    return len(text.encode()) if "utf8" in WORDS else len(text.encode("utf-16-le")) // 2


def span(number, line, start, end):
    return {
        "start": {"line": number, "character": units(line[:start])},
        "end": {"line": number, "character": units(line[:end])},
    }


def faults(uri):
    for number, line in enumerate(TEXTS[uri].split("\n")):
        if (at := line.find("WRONG")) >= 0:
            message = f"what is {line[at + 5 :].strip() or 'this'}?"
            yield {
                "range": span(number, line, at, at + 5),
                "severity": 1,
                "code": "w",
                "message": message,
            }


def publish(uri):
    if "silent" in WORDS or "pull" in WORDS:
        return
    version = VERSIONS[uri]
    if "others" in WORDS:
        folder = Path.cwd().as_uri()
        bad = [{"range": span(0, "x", 0, 1), "severity": 1, "message": "what is elsewhere?"}]
        for other in (f"{folder}/other.py", "file:///etc/passwd", "untitled:1", f"{uri}#1"):
            told = {"uri": other, "version": version, "diagnostics": bad}
            send({"method": "textDocument/publishDiagnostics", "params": told})
        told = {"uri": uri, "version": version - 1, "diagnostics": bad}
        send({"method": "textDocument/publishDiagnostics", "params": told})
    found = list(faults(uri))

    def later():
        while not Path("go").exists():
            time.sleep(0.01)
        tell()

    def tell():
        params = {"uri": uri, "version": version, "diagnostics": found}
        send({"method": "textDocument/publishDiagnostics", "params": params})

    if "late" in WORDS and found:
        threading.Thread(target=later, daemon=True).start()
    else:
        tell()
    if "others" in WORDS:
        send({"method": "textDocument/publishDiagnostics", "params": told})


def find(name):
    for uri, text in TEXTS.items():
        for number, line in enumerate(text.split("\n")):
            if (at := line.find(f"def {name}")) >= 0:
                yield uri, number, line, at + 4


def word_at(params):
    line = TEXTS[params["textDocument"]["uri"]].split("\n")[params["position"]["line"]]
    for at in range(len(line)):
        if units(line[:at]) == params["position"]["character"]:
            end = at
            while end < len(line) and (line[end].isalnum() or line[end] == "_"):
                end += 1
            return line[at:end]
    return ""


def initialize(_params):
    able = {"definitionProvider": True}
    if "pull" in WORDS:
        able["diagnosticProvider"] = {}
    if "utf8" in WORDS:
        able["positionEncoding"] = "utf-8"
    return {"capabilities": able}


def find_definition(params):
    name = word_at(params)
    return [
        {"uri": uri, "range": span(number, line, at, at + len(name))}
        for uri, number, line, at in find(name)
    ]


def find_references(params):
    name = word_at(params)
    return [
        {"uri": uri, "range": span(number, line, line.find(name), line.find(name) + 1)}
        for uri, text in TEXTS.items()
        for number, line in enumerate(text.split("\n"))
        if name in line
    ]


def list_symbols(params):
    lines = TEXTS[params["textDocument"]["uri"]].split("\n")
    return [
        {
            "name": line[4:].partition("(")[0],
            "kind": 12,
            "selectionRange": span(n, line, 4, 5),
            "range": span(n, line, 0, 1),
            "children": [],
        }
        for n, line in enumerate(lines)
        if line.startswith("def ")
    ]


def find_symbols(params):
    name = params["query"]
    return [
        {"name": name, "kind": 12, "location": {"uri": uri, "range": span(n, line, 0, 1)}}
        for uri, n, line, _ in find(name)
    ]


def explain(params):
    return {"contents": {"kind": "markdown", "value": f"about {word_at(params)}"}}


ANSWERS = {
    "initialize": initialize,
    "textDocument/definition": find_definition,
    "textDocument/references": find_references,
    "textDocument/hover": explain,
    "textDocument/documentSymbol": list_symbols,
    "workspace/symbol": find_symbols,
    "textDocument/diagnostic": lambda params: {
        "kind": "full",
        "items": list(faults(params["textDocument"]["uri"])),
    },
}


if "odd" in WORDS:
    at = {"start": {"line": 0, "character": 0}}
    fifo = {"uri": (Path.cwd() / "fifo.py").as_uri(), "range": at}
    ANSWERS["initialize"] = lambda _: {"capabilities": [1]}
    ANSWERS["textDocument/hover"] = lambda _: {"contents": [5, {"value": 6}, "a number"]}
    ANSWERS["textDocument/definition"] = lambda _: [
        *({"uri": uri, "range": at} for uri in ("file://[bad/x", "file:///%00")),
        fifo,
        {"uri": (Path.cwd() / ".env").as_uri(), "range": at},
    ]


def begin():
    if "stuck" in WORDS:
        time.sleep(600)
    if "odd" in WORDS:
        for params in ([], {"uri": "file://[bad/x"}, {"uri": "file:///%00"}):
            send({"method": "textDocument/publishDiagnostics", "params": params})
    if "asks" in WORDS:
        items = [{"section": "a.b"}, {"section": "none"}, {}]
        send({"id": "q1", "method": "workspace/configuration", "params": {"items": items}})
        send({"id": "q2", "method": "workspace/applyEdit", "params": {"edit": {}}})


def make_noise():
    while WORDS & {"noise", "flood"}:
        sys.stdout.write("hello, I am no server\n" * 2000)
        sys.stdout.flush()
        if "noise" in WORDS:
            return


def main():
    make_noise()
    while (message := read()) is not None:
        method, params, number = message.get("method"), message.get("params"), message.get("id")
        if method == "exit":
            return
        if method is None:
            with Path("answers").open("a") as file:
                file.write(json.dumps({key: message.get(key) for key in ("id", "result")}) + "\n")
        elif number is not None:
            if not WORDS & {"deaf", "mute"} or (method == "initialize" and "deaf" in WORDS):
                send({"id": number, "result": ANSWERS.get(method, lambda _: None)(params)})
        elif method == "initialized":
            begin()
        elif method in {"textDocument/didOpen", "textDocument/didChange"}:
            document = params["textDocument"]
            if "dies" in WORDS:
                sys.exit(3)
            TEXTS[document["uri"]] = document.get("text") or params["contentChanges"][0]["text"]
            VERSIONS[document["uri"]] = document["version"]
            publish(document["uri"])


main()

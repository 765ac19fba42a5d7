"""What a hostile or broken host may send, by what is wrong with it."""

from __future__ import annotations

import zlib

from tests.wires.raw_server import RESET, head

KEY = "sk-hostile-0123456789"


ERROR = b'{"error":{"message":"No %s.","type":"x"}}' % KEY.encode()


def said(wire, *after, before=()):
    """Return an answer that begins well, with other pieces in the middle."""
    begun = wire.bytes_of(*wire.begin, *wire.text_start) + wire.piece("Hello.")
    return [head(), *before, begun, *after, wire.bytes_of(*wire.end)]


def cut(wire, *after):
    return said(wire, *after)[:-1]


def whole(wire, **how):
    return [head(**how), wire.answer("Hello.")]


def raw(text):
    return b"data: " + text + b"\n\n"


def changed(wire, old, new):
    """Return an answer in whose bytes something is different."""
    return [head(), wire.answer("Hello.").replace(old, new)]


def counting(wire, number):
    text = wire.answer("Hello.")
    usage = b'"usage":{"prompt_tokens":N,"completion_tokens":N,"total_tokens":N}'
    text = text.replace(b'_tokens": 1', b'_tokens": N')
    text = text.replace(b'"id": "c",', b'"id": "c",' + usage + b",")
    metadata = b'"usageMetadata":{"promptTokenCount":N,"candidatesTokenCount":N},"modelVersion"'
    return [head(), text.replace(b'"modelVersion"', metadata).replace(b"N", number, -1)]


def counted(number):
    return lambda wire: [
        head(),
        counting(wire, b"\x00")[1].replace(b"\x00", number),
    ]


def calling(wire, old=b"", new=b"", args='{"path": "a.txt"}'):
    text = wire.bytes_of(*wire.begin, *wire.call_start) + wire.call_piece(args)
    stop = wire.bytes_of(*wire.end)
    if wire.preset == "anthropic":
        stop = stop.replace(b'"index": 0', b'"index": 1').replace(b"end_turn", b"tool_use")
    return [head(), text.replace(old, new) if old else text, stop]


def refused(status, body=ERROR, **headers):
    return lambda wire: [head(status, "application/json", **headers), body]


def http(text, *after):
    return lambda wire: [text, *after]


def sized(wire, size):
    body = wire.answer("Hello.")
    return [head(content_length=len(body) + size), body]


def chunks(*pieces):
    return lambda wire: [head(transfer_encoding="chunked"), *pieces]


DEEP = b"[" * 200_000


ROWS = {
    "good": whole,
    "invalid UTF-8": lambda w: said(w, raw(b'{"a":"\xff\xfe"}')),
    "invalid UTF-8 in the words": lambda w: changed(w, b"Hello", b"He\xc3\x28lo"),
    "half a surrogate": lambda w: changed(w, b"Hello", b"\\ud83d"),
    "NUL in the words": lambda w: changed(w, b"Hello", b"a\\u0000b"),
    "bare NUL": lambda w: changed(w, b"Hello", b"a\0b"),
    "NULs between events": lambda w: said(w, b"\0\0\0\n\n"),
    "escape sequences": lambda w: changed(w, b"Hello", b"\\u001b]0;x\\u0007\\u001b[2J"),
    "line separators": lambda w: changed(w, b"Hello", b"a\xe2\x80\xa8b\xc2\x85c"),
    "a byte order mark": lambda w: [head(), b"\xef\xbb\xbf", w.answer("Hello.")],
    "only returns": lambda w: changed(w, b"\n", b"\r"),
    "both line ends": lambda w: changed(w, b"\n\n", b"\r\n\n\r"),
    "no blank between data": lambda w: changed(w, b"data: ", b"data:"),
    "data in two lines": lambda w: changed(w, b', "', b',\ndata: "'),
    "unknown fields": lambda w: said(w, b"foo: bar\nretry: x\nid\n\n"),
    "no end of the last event": lambda w: [head(), w.answer("Hello.")[:-1]],
    "half an event": lambda w: [head(), w.answer("Hello.")[:-20]],
    "an event of nothing": lambda w: said(w, b"data:\n\ndata\n\n"),
    "no JSON": lambda w: cut(w, raw(b"{hello")),
    "an array": lambda w: said(w, raw(b"[1]")),
    "a number": lambda w: said(w, raw(b"7")),
    "a text": lambda w: said(w, raw(b'"x"')),
    "null": lambda w: said(w, raw(b"null")),
    "an empty object": lambda w: said(w, raw(b"{}")),
    "a huge number": lambda w: said(w, raw(b'{"a":' + b"9" * 10_000 + b"}")),
    "NaN": lambda w: said(w, raw(b'{"a":NaN}')),
    "deep arrays": lambda w: cut(w, raw(b'{"a":' + DEEP + b"}")),
    "the same key twice": lambda w: changed(w, b'{"', b'{"x":1,"x":2,"'),
    "an unknown event": lambda w: said(w, raw(b'{"type":"made.later","x":{"y":[1]}}')),
    "an event name that is none": lambda w: said(w, raw(b'{"type":{"a":1}}')),
    "wrong types": lambda w: said(w, raw(b'{"type":7,"choices":7,"candidates":7,"index":"x"}')),
    "done at once": lambda w: [head(), b"data: [DONE]\n\n"],
    "done twice": lambda w: [head(), w.answer("Hello."), b"data: [DONE]\n\n" * 2],
    "more after the end": lambda w: [head(), w.answer("Hello."), w.piece("More.")],
    "only the end": lambda w: [head(), w.bytes_of(*w.end)],
    "only the beginning": lambda w: [head(), w.bytes_of(*w.begin)],
    "no beginning": lambda w: [head(), w.piece("Hello."), w.bytes_of(*w.end)],
    "a piece before its block": lambda w: [
        head(),
        w.bytes_of(*w.begin) + w.piece("Hello.") + w.bytes_of(*w.text_start, *w.end),
    ],
    "two beginnings": lambda w: [head(), w.bytes_of(*w.begin * 2) + w.answer("Hello.")],
    "a block begun twice": lambda w: said(w, w.bytes_of(*w.text_start), w.piece("More.")),
    "an end without a block": lambda w: said(w, raw(b'{"type":"content_block_stop","index":9}')),
    "an end before its pieces": lambda w: [
        head(),
        w.bytes_of(*w.begin, *w.end) + w.piece("Hello."),
    ],
    "an index of a billion": lambda w: changed(w, b'index": 0', b'index": 1000000000'),
    "a negative index": lambda w: changed(w, b'index": 0', b'index": -1'),
    "an index beyond 64 bits": lambda w: changed(w, b'index": 0', b'index": ' + b"9" * 40),
    "an index that is a text": lambda w: changed(w, b'index": 0', b'index": "0"'),
    "an index that is null": lambda w: changed(w, b'index": 0', b'index": null'),
    "text that is a number": lambda w: changed(w, b'"Hello."', b"7"),
    "text that is null": lambda w: changed(w, b'"Hello."', b"null"),
    "text that is an object": lambda w: changed(w, b'"Hello."', b'{"a":1}'),
    "an unknown stop": lambda w: changed(
        w, b'"stop"' if b'"stop"' in w.answer() else b'"end_turn"', b'"exploded"'
    ),
    "a model name of 10 KB": lambda w: changed(w, b'"m"', b'"' + b"m" * 10_000 + b'"'),
    "a model name with an escape": lambda w: changed(w, b'"m"', b'"\\u001b[31m"'),
    "a model that is a number": lambda w: changed(w, b'"m"', b"7"),
    "negative usage": counted(b"-5"),
    "usage of 2 to the 63": counted(b"9223372036854775808"),
    "usage of 2 to the 63 less 1": counted(b"9223372036854775807"),
    "usage of forty digits": counted(b"9" * 40),
    "usage that is a text": counted(b'"5"'),
    "usage that is true": counted(b"true"),
    "usage that is a float": counted(b"1.5e308"),
    "usage that is null": counted(b"null"),
    "usage that is an array": counted(b"[1]"),
    "a call": calling,
    "a call without a name": lambda w: calling(w, b'"write"', b'""'),
    "a call whose name is null": lambda w: calling(w, b'"write"', b"null"),
    "a call with a name of 10 KB": lambda w: calling(w, b"write", b"w" * 10_000),
    "a call with control characters": lambda w: calling(w, b"write", b"\\u001b[2J\\u0000\\n"),
    "a call with a strange name": lambda w: calling(w, b"write", b"../../etc/passwd $(x)"),
    "a call without an id": lambda w: calling(w, b'"t"', b'""'),
    "a call whose id is a number": lambda w: calling(w, b'"t"', b"7"),
    "a call with an id of 10 KB": lambda w: calling(w, b'"t"', b'"' + b"t" * 10_000 + b'"'),
    "arguments that are an array": lambda w: calling(w, args="[1]"),
    "arguments that are a text": lambda w: calling(w, args='"x"'),
    "arguments that are null": lambda w: calling(w, args="null"),
    "arguments that do not end": lambda w: calling(w, args='{"path": "a'),
    "arguments that are deep": lambda w: calling(w, args='{"path": ' + "[" * 50_000),
    "arguments with a blob's key": lambda w: calling(w, args='{"$blob": "' + "0" * 64 + '"}'),
    "arguments with half a surrogate": lambda w: calling(w, b"a.txt", b"\\\\ud83d"),
    "arguments with a huge number": lambda w: calling(w, args='{"path": ' + "9" * 5_000 + "}"),
    "no arguments": lambda w: calling(w, args=""),
    "HTML": lambda w: [head(content_type="text/html"), b"<html><body>Sign in</body></html>"],
    "HTML as a stream": lambda w: [head(), b"<html>\n\n<body>Sign in</body>\n\n</html>"],
    "an error as 200": lambda w: [head(content_type="application/json"), ERROR],
    "an error in the stream": lambda w: cut(w, raw(ERROR)),
    "an error that is a text": lambda w: cut(w, raw(b'{"error":"No."}')),
    "an error that is null": lambda w: said(w, raw(b'{"error":null}')),
    "an error that is an array": lambda w: cut(w, raw(b'{"error":[1,[2]]}')),
    "an error whose code has 5,000 digits": lambda w: cut(
        w, raw(b'{"error":{"code":"' + b"9" * 5_000 + b'","message":"No."}}')
    ),
    "another content type": lambda w: whole(w, content_type="image/png"),
    "a content type that is none": lambda w: whole(w, content_type=";;;=\x01"),
    "an unknown charset": lambda w: whole(w, content_type="text/event-stream; charset=x"),
    "JSON cut short": lambda w: [head(content_type="application/json"), b'{"error":{"mess'],
    "nothing": lambda w: [head()],
    "204": http(b"HTTP/1.1 204 No\r\n\r\n"),
    "205": http(b"HTTP/1.1 205 No\r\n\r\n"),
    "206": lambda w: whole(w, status=206),
    "304": http(b"HTTP/1.1 304 No\r\n\r\n"),
    "100 only": http(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "100 before": lambda w: [b"HTTP/1.1 100 Continue\r\n\r\n" * 3, *whole(w)],
    "103 before": lambda w: [b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n", *whole(w)],
    "101": http(b"HTTP/1.1 101 Other\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    "300": refused(300),
    "301 to nowhere": refused(301),
    "400": refused(400),
    "400 without a word": refused(400, b""),
    "400 of invalid UTF-8": refused(400, b'{"error":{"message":"\xff"}}'),
    "400 of deep arrays": refused(400, DEEP),
    "400 that is a number": refused(400, b"7"),
    "400 with an unknown charset": lambda w: [head(400, "text/x; charset=zzz"), ERROR],
    "400 with a broken coding": refused(400, content_encoding="gzip"),
    "400 with an unknown coding": refused(400, content_encoding="zzz"),
    "400 whose code has 5,000 digits": refused(
        400, b'{"error":{"code":"' + b"9" * 5_000 + b'","message":"No."}}'
    ),
    "400 cut short": lambda w: [head(400, content_length=9_000), ERROR],
    "400 and a reset": lambda w: [head(400, content_length=9_000), ERROR, RESET],
    "401": refused(401),
    "403": refused(403),
    "404": refused(404),
    "418": refused(418),
    "499": refused(499),
    "500": refused(500, retry_after="1e12"),
    "599": refused(599, retry_after="1e12"),
    "999": http(b"HTTP/1.1 999 No\r\ncontent-length: 0\r\n\r\n"),
    **{
        f"429 and wait {wait[:24]!r}": refused(429, retry_after=wait)
        for wait in (
            *("1000000000000", "9" * 400, "1e400", "61", "1_000_000"),
            *("Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 99999 00:00:00 GMT"),
        )
    },
    **{
        f"429 and once {wait!r}": lambda w, wait=wait: [
            head(429, "application/json", retry_after=wait, retry_after_ms="1e12"),
            ERROR,
        ]
        for wait in ("-5", "NaN", "inf", "", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "\x01")
    },
    "not HTTP": http(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "TLS from a port without": http(b"\x15\x03\x03\x00\x02\x02\x28"),
    "HTTP/0.9": http(b"hello"),
    "HTTP/9.9": http(b"HTTP/9.9 200 OK\r\n\r\n"),
    "a status that is none": http(b"HTTP/1.1 abc OK\r\n\r\n"),
    "closed at once": http(b""),
    "reset at once": http(RESET),
    "reset in the head": http(b"HTTP/1.1 200", RESET),
    "reset after the head": lambda w: [head(), RESET],
    "reset in the answer": lambda w: [*cut(w), RESET],
    "reset after the answer": lambda w: [*whole(w), RESET],
    "closed in the head": http(b"HTTP/1.1 200 OK\r\nconte"),
    "closed in the answer": cut,
    "a header without a colon": http(b"HTTP/1.1 200 OK\r\nhello\r\n\r\n"),
    "a header of control characters": http(b"HTTP/1.1 200 OK\r\na: \x00\x01\r\n\r\n"),
    "a folded header": lambda w: [b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", w.answer("Hello.")],
    "strange limits": lambda w: whole(
        w, x_ratelimit_limit_requests="9" * 400, x_ratelimit_reset_requests="NaN"
    ),
    "a length too great": lambda w: sized(w, 100),
    "a length too small": lambda w: sized(w, -10),
    "a length that is negative": lambda w: whole(w, content_length="-1"),
    "a length that is none": lambda w: whole(w, content_length="x"),
    "two lengths": lambda w: whole(w, content_length="5, 6"),
    "length and chunks": lambda w: whole(w, content_length="5", transfer_encoding="chunked"),
    "a chunk without a size": chunks(b"hello\r\n"),
    "a chunk of a negative size": chunks(b"-5\r\nhello\r\n"),
    "a chunk of a huge size": chunks(b"FFFFFFFFFFFFFFFFF\r\nhello"),
    "a chunk that lies": chunks(b"2\r\nhello\r\n0\r\n\r\n"),
    "chunks that do not end": chunks(b"5\r\nhello\r\n"),
    "an unknown transfer": lambda w: whole(w, transfer_encoding="zzz"),
    "gzip that is none": lambda w: whole(w, content_encoding="gzip"),
    "deflate that is none": lambda w: whole(w, content_encoding="deflate"),
    "gzip cut short": lambda w: [
        head(content_encoding="deflate"),
        zlib.compress(w.answer("Hello."))[:-8],
    ],
}

"""Messages are cut out of what a server writes, however it comes."""

import pytest

from gong.lsp.messages import MessageReader, ServerFault, encode_message


def test_messages_come_whole_in_any_pieces():
    data = b"".join(encode_message({"id": n, "text": "ü" * n}) for n in range(5))
    expected = [{"id": n, "text": "ü" * n} for n in range(5)]
    for step in (1, 2, 7, 1000):
        reader = MessageReader()
        pieces = (data[at : at + step] for at in range(0, len(data), step))
        assert [message for piece in pieces for message in reader.read(piece)] == expected


def test_other_lines_of_a_head_are_skipped():
    body = b'{"id":1}'
    data = b"Content-Type: x; charset=utf-8\r\ncontent-length: 8\r\n\r\n" + body
    assert MessageReader().read(data) == [{"id": 1}]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"hello\n" * 4000, "something else than messages"),
        (b"X: 1\r\n\r\n{}", "no length"),
        (b"Content-Length: 99999999999\r\n\r\n", "more than 64 MB"),
        (b"Content-Length: 3\r\n\r\n{]}", "not JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "not an object"),
        (b"Content-Length: 200000\r\n\r\n" + b"[" * 100_000 + b"]" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_message_is_named(data, words):
    with pytest.raises(ServerFault, match=words):
        MessageReader().read(data)

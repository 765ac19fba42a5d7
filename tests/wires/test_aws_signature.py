"""botocore as judge of our signatures."""

from datetime import UTC, datetime
from itertools import product

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from freezegun import freeze_time

from gong.llm.keys import SigningKey
from gong.llm.wires.aws_signature import build_signature_headers

NOW = datetime(2026, 11, 28, 23, 59, 59, tzinfo=UTC)
KEYS = [
    SigningKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    SigningKey("ASIAEXAMPLE", "secret", "token/with+signs=="),
]
URLS = [
    "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-x-v1%3A0/invoke",
    "http://127.0.0.1:8080/model/arn%3Aaws%3Abedrock%3A%3Ap%2Fx/converse-stream",
    "https://h.example/a//b/./~c/%C3%BC%20x?b=2&a=%C3%BC&a=1&empty=&space=a%20b",
    "https://h.example",
]
HEADERS = [
    {"content-type": "application/json"},
    {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-odd": "  a   b "},
    {"content-type": "a", "user-agent": "gong/1", "accept": "*/*", "x-amz-meta": "1"},
]
BODIES = [b"", b'{"a": "\xc3\xbc"}']
NOT_SIGNED = {"user-agent", "accept", "accept-encoding", "content-length"}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
@freeze_time(NOW)
@pytest.mark.parametrize("service", ["bedrock", "bedrock-mantle"])
def test_a_signature_is_that_of_botocore(key, service):
    judge = SigV4Auth(Credentials(key.id, key.secret, key.session_token), service, "eu-west-1")
    for url, headers, body in product(URLS, HEADERS, BODIES):
        sent = {name: text for name, text in headers.items() if name not in NOT_SIGNED}
        request = AWSRequest("POST", url, sent, body)
        judge.add_auth(request)
        ours = build_signature_headers(key, ("eu-west-1", service), url, headers, body, NOW)
        theirs = {name.lower(): text for name, text in request.headers.items()}
        assert ours == {name: text for name, text in theirs.items() if name not in headers}

"""An authority for logins on loopback: pages, codes, tokens, and what it was asked."""

import json
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qsl, urlencode, urlsplit


class Authority:
    """Answers of one authority; `answers` of a path go before its own, first one first."""

    def __init__(self, address):
        self.address = address
        self.seen = []
        self.answers = {}
        self.seconds = 3600
        self.number = 0
        self.refresh = "refresh-0"
        self.challenge = ""
        self.lock = Lock()

    def settings(self, **changes):
        urls = {
            f"{name}_url": f"{self.address}/{name}"
            for name in ("token", "authorize", "device", "revoke")
        }
        return {"client_id": "my-client", "scopes": ["models"], **urls, **changes}

    def count(self, path):
        return sum(seen == path for seen, _ in self.seen)

    def answer(self, path, fields):
        with self.lock:
            self.seen.append((path, fields))
            if queue := self.answers.get(path):
                return queue.pop(0)
            return getattr(self, f"answer_{path.strip('/')}")(fields)

    def answer_device(self, _fields):
        facts = {"device_code": "device-secret", "user_code": "ABCD-EFGH", "interval": 0}
        return 200, {**facts, "verification_uri": f"{self.address}/type", "expires_in": 600}

    def answer_authorize(self, fields):
        assert fields["code_challenge_method"] == "S256"
        self.challenge = fields["code_challenge"]
        query = urlencode({"code": "code-1", "state": fields["state"]})
        return 302, f"{fields['redirect_uri']}?{query}"

    def answer_token(self, fields):
        match fields["grant_type"]:
            case "authorization_code":
                digest = sha256(fields["code_verifier"].encode()).digest()
                if urlsafe_b64encode(digest).rstrip(b"=").decode() != self.challenge:
                    return 400, {"error": "invalid_grant"}
            case "refresh_token" if fields["refresh_token"] != self.refresh:
                text = "refresh token was used"
                return 400, {"error": "invalid_grant", "error_description": text}
        self.number += 1
        self.refresh = f"refresh-{self.number}"
        return 200, {
            "access_token": f"access-token-{self.number}",
            "token_type": "Bearer",
            "expires_in": self.seconds,
            "refresh_token": self.refresh,
        }

    def answer_call(self, authorization):
        """Answer a model call that has the newest token."""
        self.seen.append(("call", authorization))
        if authorization != f"Bearer access-token-{self.number}":
            return 401, {"error": {"message": "this token was withdrawn"}}
        message = {"role": "assistant", "content": "Here I am."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"id": "1", "model": "m", "choices": [choice]}

    def answer_revoke(self, _fields):
        return 200, None


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = urlsplit(self.path)
        self._send(*self.server.authority.answer(parts.path, dict(parse_qsl(parts.query))))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.path == "/v1/chat/completions":
            self._send(*self.server.authority.answer_call(self.headers["authorization"]))
            return
        self._send(*self.server.authority.answer(self.path, dict(parse_qsl(body))))

    def _send(self, status, value):
        self.send_response(status)
        if status == 302:
            self.send_header("location", value)
        is_empty = value is None or status == 302
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        data = b"" if is_empty else data
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def serve_authority():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.authority = Authority(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.authority
    finally:
        server.shutdown()
        server.server_close()

"""Model servers of this machine are asked for their models and windows."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from gong.llm.local_models import LocalModel, find_local_window, list_local_models


@contextmanager
def serve(answers):
    """Serve JSON by path, and 404 for other paths; a dict of models answers `/api/show`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send(answers.get(self.path))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send((answers.get(self.path) or {}).get(body["model"]))

        def send(self, value):
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def listed(**fields):
    return {"/v1/models": {"data": [{"id": "m", **fields}]}}


OLLAMA = {
    **listed(),
    "/api/ps": {"models": [{"name": "m", "context_length": 4096}]},
    "/api/show": {"m": {"model_info": {"llama.context_length": 131072}}},
}


@pytest.mark.parametrize(
    ("answers", "window"),
    [
        (OLLAMA, 4096),
        ({**OLLAMA, "/api/ps": {"models": []}}, 131072),
        ({**OLLAMA, "/api/show": {"m": {"parameters": "stop x\nnum_ctx    8192\n"}}}, 8192),
        (listed(max_model_len=32768), 32768),
        (listed(meta={"n_ctx_train": 2048}), 2048),
        ({**listed(), "/props": {"default_generation_settings": {"n_ctx": 16384}}}, 16384),
        (
            {
                **listed(),
                "/api/v0/models": {
                    "data": [
                        {"id": "m", "loaded_context_length": 4096, "max_context_length": 99999}
                    ]
                },
            },
            4096,
        ),
        (listed(), None),
        (listed(max_model_len="many", context_length=True, n_ctx=-1), None),
        ({"/v1/models": {"data": [{"id": "other", "max_model_len": 5}]}}, None),
        ({"/v1/models": b"<html>"}, None),
        ({"/v1/models": [1]}, None),
        ({}, None),
    ],
)
def test_a_server_is_asked_for_the_window_of_a_model(answers, window):
    with serve(answers) as endpoint:
        assert find_local_window(endpoint, "m") == window


def test_a_server_that_is_not_there_says_nothing():
    with serve({}) as endpoint:
        pass
    assert list_local_models(endpoint) is None
    assert find_local_window(endpoint, "m") is None


def test_the_models_of_a_server_are_listed(gong):
    with serve(listed(max_model_len=32768)) as endpoint:
        assert list_local_models(endpoint) == (LocalModel("m", 32768),)
        told = gong("models", "--provider", "vllm", VLLM_BASE_URL=endpoint).stdout
        assert told.split("\n")[1].split()[:3] == ["vllm/m", "33", "k"]
        shown = gong("models", "show", "vllm/m", VLLM_BASE_URL=endpoint).stdout
        assert "window      33 k" in shown
    told = gong("models", "--provider", "vllm", VLLM_BASE_URL=endpoint).stderr
    assert "no server answers at http://127.0.0.1:" in told


def test_a_session_learns_the_window_of_a_local_model(gong):
    choice = {"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}
    answer = {"id": "1", "model": "m", "choices": [choice]}
    answers = {**OLLAMA, "/v1/chat/completions": {"m": answer}}
    with serve(answers) as endpoint:
        told = gong("-v", "-p", "hello", "-m", "ollama/m", OLLAMA_BASE_URL=endpoint)
    assert told.stdout == "Hi.\n"
    assert "window 4,096 tokens" in told.stderr
    assert "is unknown" not in told.stderr

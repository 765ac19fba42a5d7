"""Plugins of a marketplace that are npm packages; the registry is on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gong.errors import ConfigurationError
from gong.plugins.install import fetch_plugin

PACKAGE = {"name": "@acme/guard", "scripts": {"prepare": "touch ran", "preinstall": "touch ran"}}
FILES = {
    "package.json": json.dumps({**PACKAGE, "version": "1.2.0"}),
    ".claude-plugin/plugin.json": json.dumps({"name": "guard"}),
    "commands/check.md": "Check it",
}
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")


def pack(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    return data.getvalue()


@contextmanager
def serve(archive):
    """Serve one version of one package, and yield the address of the registry."""

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self):
            body = archive
            if not self.path.endswith(".tgz"):
                url = f"http://127.0.0.1:{self.server.server_port}/guard-1.2.0.tgz"
                digest = b64encode(hashlib.sha512(archive).digest()).decode()
                dist = {"tarball": url, "integrity": f"sha512-{digest}"}
                version = {**PACKAGE, "version": "1.2.0", "dist": dist}
                about = {"dist-tags": {"latest": "1.2.0"}, "versions": {"1.2.0": version}}
                body = json.dumps({"name": PACKAGE["name"], **about}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    npm = shutil.which("npm")
    path = f"{Path(npm).parent}:/usr/bin:/bin" if npm else "/usr/bin:/bin"
    return {"HOME": str(tmp_path / "home"), "PATH": path}


def make_market(tmp_path, **source):
    entry = {"name": "guard", "source": {"source": "npm", "package": "@acme/guard", **source}}
    file = tmp_path / "m/.claude-plugin/marketplace.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"name": "m", "plugins": [entry]}))
    return str(tmp_path / "m")


@needs_npm
def test_a_package_is_fetched_and_runs_nothing(tmp_path, environ):
    with serve(pack(FILES)) as registry:
        market = make_market(tmp_path, version="^1.0.0", registry=registry)
        with fetch_plugin(market, environ) as plugin:
            names = [name for _, name in plugin.list_files("commands")]
            there = {str(one.relative_to(plugin.root)) for one in plugin.root.rglob("*.*")}
    assert (plugin.name, names) == ("guard", ["check"])
    assert there == {".claude-plugin", *FILES}


@needs_npm
def test_a_package_that_leads_out_of_its_folder_is_refused(tmp_path, environ):
    with serve(pack({**FILES, "../../../out.md": "x"})) as registry:
        market = make_market(tmp_path, registry=registry)
        with pytest.raises(ConfigurationError, match="unpacked"), fetch_plugin(market, environ):
            pass
    assert not [*tmp_path.rglob("out.md")]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"package": "git+ssh://host/x"}, "is no name of an npm package"),
        ({"package": "../folder"}, "is no name of an npm package"),
        ({"package": "--prefix=x"}, "is no name of an npm package"),
        ({"version": "file:../x"}, "is no version of @acme/guard"),
        ({"registry": "ftp://host"}, "is no registry"),
        ({}, "is a package of npm, which is not installed: install Node.js with npm"),
    ],
)
def test_what_npm_is_not_asked_for_is_one_line(tmp_path, environ, source, why):
    (tmp_path / "empty").mkdir()
    environ["PATH"] = str(tmp_path / "empty")
    market = make_market(tmp_path, **source)
    with pytest.raises(ConfigurationError, match=why), fetch_plugin(market, environ):
        pass

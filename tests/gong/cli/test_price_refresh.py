"""`gong models refresh`: newer prices from a file or an address, and files that cannot be true."""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from gong.llm.price_lists import SHIPPED

KNOWN = json.loads(SHIPPED.read_bytes())


def rows_of(host, rows):
    return next(each for each in rows if each["id"] == host)["models"]


@pytest.fixture
def prices(tmp_path):
    """A file with all known rows, one changed, one new and one gone."""
    rows = json.loads(json.dumps(KNOWN))
    models = rows_of("openai", rows)
    gpt = next(row for row in models if row["id"] == "gpt-4o")
    gpt["prices"]["input_mtok"] = 3
    gpt["description"] = "said at length"
    models.remove(next(row for row in models if row["id"] == "gpt-4"))
    new = {
        "id": "gpt-9",
        "match": {"equals": "gpt-9"},
        "prices": {"input_mtok": 1, "output_mtok": 2},
    }
    models.append(new)
    file = tmp_path / "data.json"
    file.write_text(json.dumps(rows))
    return file


def write(file, change):
    rows = json.loads(file.read_bytes())
    change(rows)
    file.write_text(json.dumps(rows))


def test_newer_prices_count_once_they_are_refreshed(gong, home, prices):
    told = gong("models", "refresh", "--from", str(prices)).stdout
    assert told.split("\n")[:3] == [
        "changed  openai/gpt-4o  input $2.5 → $3",
        "gone     openai/gpt-4   the known price stays",
        "new      openai/gpt-9   input $1, output $2 per million tokens",
    ]
    file = home / ".cache/gong/prices.json"
    assert f"the prices of 19 hosts are in {file}" in told
    assert "input $3, output $10" in gong("models", "show", "openai/gpt-4o").stdout
    assert "input $1, output $2" in gong("models", "show", "openai/gpt-9").stdout
    assert "input $30, output $60" in gong("models", "show", "openai/gpt-4").stdout
    again = json.loads(gong("models", "refresh", "--from", str(prices), "--json").stdout)
    assert (again["changed"], again["refused"]) == ([], [])
    # a file that was damaged since changes nothing
    file.write_bytes(file.read_bytes()[:-100])
    assert "input $2.5" in gong("models", "show", "openai/gpt-4o").stdout


def test_prices_come_from_an_address(gong, prices):
    handler = partial(SimpleHTTPRequestHandler, directory=prices.parent)
    handler.log_message = None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        told = gong("models", "refresh", "--from", f"{url}/data.json").stdout
        assert "changed  openai/gpt-4o" in told
        told = gong("models", "refresh", "--from", f"{url}/other.json", code=75).stderr
        assert f"{url}/other.json answers with status 404" in told
        server.shutdown()
    told = gong("models", "refresh", "--from", f"{url}/data.json", code=75).stderr
    assert f"cannot read {url}/data.json" in told
    told = gong("models", "refresh", "--from", f"{url}/data.json?sig=hidden", code=75).stderr
    assert f"cannot read {url}/data.json: " in told
    assert "hidden" not in told
    for source in ("http://me:hidden@127.0.0.1:9/x", "http://me:hidden@host"):
        told = gong("models", "refresh", "--from", source, code=2).stderr
        assert told == "gong: the address of --from contains a user name: leave it out\n"


def multiply(factor, rows):
    for host in rows:
        for row in host["models"]:
            if isinstance(row["prices"], dict):
                for name, price in row["prices"].items():
                    if not isinstance(price, dict):
                        row["prices"][name] = price * factor


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: multiply(1e6, rows), "cannot be: "),
        (lambda rows: multiply(1e-6, rows), "is it another unit?"),
        (lambda rows: rows.clear(), "prices of no host"),
        (lambda rows: rows_of("openai", rows)[0].update(match={"sounds_like": "x"}), "rule"),
        (lambda rows: rows_of("openai", rows)[0].update(match={"regex": "("}), "pattern"),
        (
            lambda rows: rows_of("openai", rows)[0].update(prices={"input_mtok": -1}),
            "cannot be read",
        ),
        (lambda rows: rows_of("openai", rows)[0].update(prices="free"), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_true_changes_nothing(gong, home, prices, change, words):
    write(prices, change)
    assert words in gong("models", "refresh", "--from", str(prices), code=2).stderr
    assert not (home / ".cache/gong/prices.json").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cannot be read as JSON"),
        (b'[{"id": "openai", "models": [', "cannot be read as JSON"),
        (b'{"version": 3, "providers": []}', "newer form"),
        (b"[1, 2]", "no list of prices"),
        (b'[{"id": "openai"}]', "no list of prices"),
        (b"\xff\xfe", "cannot be read as JSON"),
    ],
)
def test_a_file_that_is_cut_or_newer_is_refused(gong, home, tmp_path, data, words):
    file = tmp_path / "cut.json"
    file.write_bytes(data)
    assert words in gong("models", "refresh", "--from", str(file), code=2).stderr
    assert not (home / ".cache").exists()


def test_one_price_that_cannot_be_is_named_and_the_known_one_stays(gong, prices):
    def lie(rows):
        models = {row["id"]: row for row in rows_of("openai", rows)}
        models["gpt-4o"]["prices"]["input_mtok"] = 2.5e6
        models["gpt-9"]["prices"]["output_mtok"] = 1e-9
        models["o3"]["prices"] = {"input_mtok": 2e-6, "output_mtok": 8}

    write(prices, lie)
    told = gong("models", "refresh", "--from", str(prices))
    assert "openai/gpt-4o: input_mtok is $2,500,000" in told.stderr
    assert "openai/o3: input_mtok is $2e-06 and was $2" in told.stderr
    assert "input $2.5" in gong("models", "show", "openai/gpt-4o").stdout

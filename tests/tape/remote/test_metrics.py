"""Figures of pushes for Prometheus: their text, and the page of a watch."""

import re
import signal
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tape.remote.metrics import Metric, PushMetrics, render_metrics
from tape.remote.push import PushOutcome
from tests.e2e.conftest import Place


def test_figures_have_help_type_and_escaped_labels():
    figures = PushMetrics('a"b\\', "two\nlines")
    figures.record_changed(3)
    figures.record_push([PushOutcome("a", 2, 512), PushOutcome("b", error="damage")], 5.5)
    figures.record_changed(2)
    figures.record_failure()
    text = render_metrics(figures.list_metrics())
    labels = '{remote="a\\"b\\\\",machine="two\\nlines"}'
    values = dict(re.findall(r"^(tape_\w+)\{.*\} (\S+)$", text, re.MULTILINE))
    assert values == {
        "tape_push_rounds_total": "2",
        "tape_push_failed_total": "1",
        "tape_push_tapes_total": "1",
        "tape_push_chunks_total": "2",
        "tape_push_bytes_total": "512",
        "tape_push_refused_total": "1",
        "tape_push_behind_tapes": "2",
        "tape_push_last_timestamp_seconds": "5.5",
    }
    assert f"tape_push_bytes_total{labels} 512\n" in text
    for name in values:
        assert re.search(
            rf"^# HELP {name} .+\n# TYPE {name} (counter|gauge)\n{name}\{{", text, re.MULTILINE
        )
    assert render_metrics([Metric("n", "gauge", "a", [({}, 0.25)])]).endswith("n{} 0.25\n")


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "home")
    (tmp_path / "team").mkdir()
    place.run("tape", "remote", "add", "team", str(tmp_path / "team"), "--mode", "manual")
    place.run("tape", "new", "--title", "one")
    return place


def test_a_watch_serves_its_figures_on_loopback(place):
    """M213."""
    words = ("push", "--all", "--yes", "--watch", "--metrics", "0")
    with place.start("tape", *words) as running:
        address = running.stdout.readline().split()[-1]
        while "watching" not in running.stdout.readline():
            pass
        text = urlopen(address).read().decode()
        assert re.search(r'^tape_push_tapes_total\{remote="team",\S+\} 1$', text, re.MULTILINE)
        assert re.search(r"^tape_push_behind_tapes\{.*\} 0$", text, re.MULTILINE)
        with pytest.raises(HTTPError, match="404"):
            urlopen(address.replace("/metrics", "/"))
        port = address.split(":")[-1].split("/")[0]
        taken = place.run("tape", "push", "--watch", "--metrics", port, code=2)
        assert f"port {port} cannot be used" in taken.stderr
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 0
    assert "goes with --watch" in place.run("tape", "push", "--metrics", "0", code=2).stderr

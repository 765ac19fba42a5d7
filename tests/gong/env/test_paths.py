import pytest

from gong.env.protocol import is_escaping_path, resolve_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", "/src/a.txt"),
        ("./sub/../a.txt", "/src/a.txt"),
        ("/etc/hosts", "/etc/hosts"),
        ("", "/src"),
        (".", "/src"),
        ("~", "/home/me"),
        ("~/notes.txt", "/home/me/notes.txt"),
        ("~other/notes.txt", "/src/~other/notes.txt"),
        ("a~/b", "/src/a~/b"),
        ("@src/a.py", "/src/src/a.py"),
        ("@~/notes.txt", "/home/me/notes.txt"),
        ("@@a", "/src/@a"),
        ("a\u00a0b\u202fc\u3000d\u2009e\u205ff", "/src/a b c d e f"),
        ("截图 2026 下午.png", "/src/截图 2026 下午.png"),
    ],
)
def test_a_path_is_made_absolute_as_the_model_means_it(path, expected):
    """M043"""
    assert resolve_path(path, "/src", "/home/me") == expected


def test_tilde_stays_where_no_home_is_known():
    assert resolve_path("~/a", "/src", None) == "/src/~/a"


@pytest.mark.parametrize(
    ("path", "out"),
    [
        ("../../etc/passwd", True),
        ("..", True),
        ("sub/../../x", True),
        ("@../x", True),
        ("~/../x", True),
        ("/src/../etc/passwd", True),
        ("../src-other/x", True),
        ("sub/../x", False),
        ("../src/x", False),
        ("/etc/passwd", False),
        ("~/x", False),
        ("..name", False),
    ],
)
def test_only_a_path_with_dots_that_ends_outside_climbs_out(path, out):
    assert is_escaping_path(path, resolve_path(path, "/src", "/home/me"), "/src") is out


def test_nothing_climbs_out_of_the_root_folder():
    assert not is_escaping_path("../x", resolve_path("../x", "/", None), "/")

import pytest

from gong.env.paths import absolute, climbs_out


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", "/work/a.txt"),
        ("./sub/../a.txt", "/work/a.txt"),
        ("/etc/hosts", "/etc/hosts"),
        ("", "/work"),
        (".", "/work"),
        ("~", "/home/me"),
        ("~/notes.txt", "/home/me/notes.txt"),
        ("~other/notes.txt", "/work/~other/notes.txt"),
        ("a~/b", "/work/a~/b"),
        ("@src/a.py", "/work/src/a.py"),
        ("@~/notes.txt", "/home/me/notes.txt"),
        ("@@a", "/work/@a"),
        ("a\u00a0b\u202fc\u3000d\u2009e\u205ff", "/work/a b c d e f"),
        ("截图 2026 下午.png", "/work/截图 2026 下午.png"),
    ],
)
def test_a_path_is_made_absolute_as_the_model_means_it(path, expected):
    """M043"""
    assert absolute(path, "/work", "/home/me") == expected


def test_tilde_stays_where_no_home_is_known():
    assert absolute("~/a", "/work", None) == "/work/~/a"


@pytest.mark.parametrize(
    ("path", "out"),
    [
        ("../../etc/passwd", True),
        ("..", True),
        ("sub/../../x", True),
        ("@../x", True),
        ("~/../x", True),
        ("/work/../etc/passwd", True),
        ("../work-other/x", True),
        ("sub/../x", False),
        ("../work/x", False),
        ("/etc/passwd", False),
        ("~/x", False),
        ("..name", False),
    ],
)
def test_only_a_path_with_dots_that_ends_outside_climbs_out(path, out):
    assert climbs_out(path, absolute(path, "/work", "/home/me"), "/work") is out


def test_nothing_climbs_out_of_the_root_folder():
    assert not climbs_out("../x", absolute("../x", "/", None), "/")

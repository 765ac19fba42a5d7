import pytest

from gong.env.local import QUIET_VARIABLES, build_child_variables

ENVIRON = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "GOPATH": "/go",
    "EDITOR": "vim",
    "NICE": "1",
    "OPENAI_API_KEY": "s",
    "my_secret": "s",
    "Git_Token": "s",
    "DB_PASSWORD": "s",
    "X_CREDENTIAL": "s",
    "TOKENS": "3",
}
KEPT = {"PATH": "/bin", "HOME": "/home/me", "GOPATH": "/go", "NICE": "1", "TOKENS": "3"}


@pytest.mark.parametrize(
    ("policy", "inherited"),
    [
        ("filter", KEPT),
        ("inherit-all", ENVIRON),
        ("none", {}),
        ("core-only", {"PATH": "/bin", "HOME": "/home/me", "GOPATH": "/go"}),
    ],
)
def test_each_policy_passes_what_it_says(policy, inherited):
    """M124"""
    assert build_child_variables(ENVIRON, policy) == {**inherited, **QUIET_VARIABLES}


def test_what_the_caller_gives_wins_even_over_the_filter():
    variables = build_child_variables(ENVIRON, "filter", {"MY_TOKEN": "t", "PAGER": "less"})
    assert (variables["MY_TOKEN"], variables["PAGER"]) == ("t", "less")


def test_settings_of_git_are_added_to_those_inherited():
    """Repositories of a project run no program of their own; what is inherited stays."""
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    variables = build_child_variables({**ENVIRON, **given}, "filter")
    settings = [
        (variables[f"GIT_CONFIG_KEY_{n}"], variables[f"GIT_CONFIG_VALUE_{n}"])
        for n in range(int(variables["GIT_CONFIG_COUNT"]))
    ]
    ours = [("safe.bareRepository", "explicit"), ("core.fsmonitor", "false")]
    assert settings == [("a.b", "c"), *ours]

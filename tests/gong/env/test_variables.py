import pytest

from gong.env.local import QUIET_VARIABLES, build_child_variables
from gong.env.variables import VariableRules, is_secret_variable

ENVIRON = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "GOPATH": "/go",
    "USER": "me",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "CARGO_HOME": "/cargo",
    "NVM_DIR": "/nvm",
    "EDITOR": "vim",
    "NICE": "1",
    "OPENAI_API_KEY": "s",
    "my_secret": "s",
    "Git_Token": "s",
    "DB_PASSWORD": "s",
    "X_CREDENTIAL": "s",
    "TOKENS": "3",
}
CORE = {name: ENVIRON[name] for name in (*ENVIRON,)[: (*ENVIRON,).index("EDITOR")]}
KEPT = {**CORE, "NICE": "1", "TOKENS": "3"}


@pytest.mark.parametrize(
    ("policy", "inherited"),
    [
        ("filter", KEPT),
        ("inherit-all", ENVIRON),
        ("none", {}),
        ("core-only", CORE),
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


SECRET = """
AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN
NPM_TOKEN NODE_AUTH_TOKEN npm_config__auth npm_config__authToken npm_config_//x/:_authToken
PYPI_TOKEN TWINE_PASSWORD UV_PUBLISH_TOKEN POETRY_PYPI_TOKEN_PYPI CARGO_REGISTRY_TOKEN PGPASSWORD
PGPASSFILE MYSQL_PWD MYSQL_ROOT_PASSWORD REDIS_PASSWORD MONGO_PASSWORD DB_PASS DB_PASSWD
OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_APIKEY HF_TOKEN HUGGING_FACE_HUB_TOKEN AZURE_OPENAI_KEY
AZURE_CLIENT_SECRET GOOGLE_APPLICATION_CREDENTIALS ARM_ACCESS_KEY STRIPE_SECRET_KEY STRIPE_KEY
SLACK_BOT_TOKEN SLACK_WEBHOOK_URL DISCORD_TOKEN TELEGRAM_BOT_TOKEN TWILIO_AUTH_TOKEN SENDGRID_KEY
DJANGO_SECRET_KEY SECRET_KEY_BASE JWT_SECRET SESSION_SECRET APP_KEY ENCRYPTION_KEY SIGNING_KEY
SSH_PRIVATE_KEY GPG_PASSPHRASE VAULT_TOKEN CONSUL_HTTP_TOKEN NOMAD_TOKEN DIGITALOCEAN_ACCESS_TOKEN
CLOUDFLARE_API_TOKEN HEROKU_API_KEY SENTRY_AUTH_TOKEN SENTRY_DSN DATADOG_API_KEY
NEW_RELIC_LICENSE_KEY GITHUB_PAT DOCKER_PASSWORD DOCKER_AUTH_CONFIG_AUTH KUBE_TOKEN SONAR_TOKEN
CODECOV_TOKEN ADMIN_PASSWORD MY_CREDENTIALS KEY AZURE_STORAGE_CONNECTION_STRING SAUCE_ACCESS_KEY
COOKIE_SECRET
"""
PLAIN = """
PATH HOME USER LANG TERM SHELL PWD OLDPWD EDITOR PAGER DISPLAY XAUTHORITY XDG_RUNTIME_DIR HISTSIZE
SSH_AUTH_SOCK SSH_ASKPASS GPG_AGENT_INFO GPG_TTY GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_EDITOR
TOKENIZERS_PARALLELISM CLAUDE_CODE_MAX_OUTPUT_TOKENS MAX_TOKENS KEYBOARD_LAYOUT
GNOME_KEYRING_CONTROL PASSWORD_STORE_DIR MONKEY HOTKEYS_ENABLED KEYMAP AUTHOR PASSENGER_ROOT
COMPASS_URL NODE_ENV CI GITHUB_ACTIONS GITHUB_REPOSITORY CARGO_HOME JAVA_HOME VIRTUAL_ENV
PYTHONPATH OAUTH_CLIENT_ID HTTP_PROXY https_proxy NO_PROXY KUBECONFIG AWS_REGION AWS_PROFILE
DOCKER_HOST PIP_INDEX_URL SSH_PUBLIC_KEY BYPASS_CACHE PINNED OPTIONS SECRETARY LS_COLORS
DBUS_SESSION_BUS_ADDRESS
"""


@pytest.mark.parametrize("name", SECRET.split())
def test_a_secret_is_told_by_its_name(name):
    assert is_secret_variable(name, "x")


@pytest.mark.parametrize("name", PLAIN.split())
def test_other_names_are_no_secrets(name):
    assert not is_secret_variable(name, "x")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DATABASE_URL", "postgres://ada:hunter2@db/x", True),
        ("REDIS", "redis://:hunter2@db:6379", True),
        ("DATABASE_URL", "postgres://db/x", False),
        ("DATABASE_URL", "postgres://ada@db/x", False),
        ("HTTPS_PROXY", "http://ada:hunter2@proxy:3128", False),
        ("DEPLOY", "-----BEGIN OPENSSH PRIVATE KEY-----\nx", True),
        ("CA_BUNDLE", "-----BEGIN CERTIFICATE-----\nx", False),
    ],
)
def test_a_secret_is_told_by_what_it_holds(name, value, secret):
    assert is_secret_variable(name, value) is secret


@pytest.mark.parametrize("policy", ["filter", "none", "core-only"])
def test_what_the_setting_lists_is_inherited(policy):
    rules = VariableRules(policy, ("GIT*_TOKEN", "DB_PASSWORD"))
    environ = {"GITHUB_TOKEN": "a", "GITLAB_TOKEN": "b", "DB_PASSWORD": "c", "NPM_TOKEN": "d"}
    assert rules.select_variables(environ) == {
        "GITHUB_TOKEN": "a",
        "GITLAB_TOKEN": "b",
        "DB_PASSWORD": "c",
    }

import os
import subprocess

import pytest

from gong.env.local import QUIET_VARIABLES, build_child_variables
from gong.env.variables import VariableRules, is_secret_variable
from gong.llm.models import load_presets

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


def test_a_setting_of_git_with_a_secret_is_left_out_with_its_name(tmp_path):
    """Git fails at a name without a value."""
    secret = "AUTHORIZATION: basic " + "eC1hY2Nlc3M6YTFCMg=="
    given = {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "http.extraheader",
        "GIT_CONFIG_VALUE_0": secret,
        "GIT_CONFIG_KEY_1": "a.b",
        "GIT_CONFIG_VALUE_1": "c",
        "GIT_CONFIG_KEY_2": "d.e",
    }
    variables = build_child_variables({**given, "PATH": os.environ["PATH"]}, "filter")
    listed = subprocess.run(
        ["git", "config", "--list"],
        env={**variables, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = ["a.b=c", "safe.barerepository=explicit", "core.fsmonitor=false"]
    assert listed.stdout.splitlines() == expected


SECRET = """
AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_BEARER_TOKEN_BEDROCK
AWS_CONTAINER_AUTHORIZATION_TOKEN AWS_WEB_IDENTITY_TOKEN_FILE
AZURE_CLIENT_SECRET AZURE_OPENAI_KEY AZURE_STORAGE_KEY AZURE_STORAGE_CONNECTION_STRING
AZURE_STORAGE_SAS_TOKEN AZURE_DEVOPS_EXT_PAT ARM_ACCESS_KEY IDENTITY_HEADER
GOOGLE_APPLICATION_CREDENTIALS GOOGLE_API_KEY GCP_SA_KEY CLOUDSDK_AUTH_ACCESS_TOKEN
GITHUB_TOKEN GH_TOKEN GITHUB_PAT GITHUB_APP_PRIVATE_KEY GITLAB_TOKEN CI_JOB_TOKEN CI_JOB_JWT
CI_JOB_JWT_V2 CI_REGISTRY_PASSWORD BITBUCKET_APP_PASSWORD ACTIONS_RUNTIME_TOKEN
NPM_TOKEN NODE_AUTH_TOKEN npm_config__auth NPM_CONFIG__AUTH npm_config__authToken
npm_config__password npm_config_//registry.npmjs.org/:_authToken YARN_NPM_AUTH_IDENT
YARN_NPM_AUTH_TOKEN COMPOSER_AUTH BUNDLE_RUBYGEMS__PKG__GITHUB__COM GEM_HOST_API_KEY
PYPI_TOKEN TWINE_PASSWORD UV_PUBLISH_TOKEN UV_INDEX_MINE_PASSWORD POETRY_PYPI_TOKEN_PYPI
POETRY_HTTP_BASIC_MINE_PASSWORD CARGO_REGISTRY_TOKEN CARGO_REGISTRIES_MINE_TOKEN NUGET_API_KEY
DOCKER_PASSWORD DOCKER_AUTH_CONFIG KUBE_TOKEN KUBE_CONFIG_DATA HELM_REPO_PASSWORD
PGPASSWORD PGPASSFILE MYSQL_PWD MYSQL_ROOT_PASSWORD REDIS_PASSWORD REDISCLI_AUTH MONGO_PASSWORD
DB_PASS DB_PASSWD DBPASS DB_PASSWORD2 SMTP_PASS SSHPASS FTP_PASSWORD LDAP_BIND_PW LDAP_BINDPW
EMAIL_HOST_PASSWORD RESTIC_PASSWORD BORG_PASSPHRASE ANSIBLE_BECOME_PASS ANSIBLE_VAULT_PASSWORD_FILE
OPENAI_API_KEY OPENAI_APIKEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN
ANTHROPIC_CUSTOM_HEADERS GEMINI_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN LITELLM_MASTER_KEY
OPENAI_API_KEYS API_TOKENS WANDB_API_KEY KAGGLE_KEY REPLICATE_API_TOKEN LANGFUSE_SECRET_KEY
STRIPE_SECRET_KEY STRIPE_KEY SQUARE_ACCESS_TOKEN PLAID_SECRET PAYPAL_CLIENT_SECRET
SLACK_BOT_TOKEN SLACK_WEBHOOK_URL SLACK_WEBHOOK DISCORD_TOKEN DISCORD_WEBHOOK_URL
TELEGRAM_BOT_TOKEN TWILIO_AUTH_TOKEN SENDGRID_KEY MAILGUN_API_KEY
DJANGO_SECRET_KEY SECRET_KEY_BASE SECRET_KEY JWT_SECRET SESSION_SECRET COOKIE_SECRET APP_KEY
ENCRYPTION_KEY SIGNING_KEY RAILS_MASTER_KEY AIRFLOW__CORE__FERNET_KEY AUTH_SALT awsSecretKey
ORG_GRADLE_PROJECT_signingKey ORG_GRADLE_PROJECT_mavenCentralPassword CSC_LINK CSC_KEY_PASSWORD
SSH_PRIVATE_KEY DEPLOY_KEY GPG_PASSPHRASE GPG_PRIVATE_KEY GNOME_KEYRING_PASSWORD SOPS_AGE_KEY
VAULT_TOKEN VAULT_SECRET_ID CONSUL_HTTP_TOKEN CONSUL_HTTP_AUTH NOMAD_TOKEN OP_SESSION_mine
OP_SERVICE_ACCOUNT_TOKEN BW_SESSION FASTLANE_SESSION DOPPLER_TOKEN INFISICAL_TOKEN TS_AUTHKEY
DIGITALOCEAN_ACCESS_TOKEN CLOUDFLARE_API_TOKEN CLOUDFLARE_API_KEY HEROKU_API_KEY VERCEL_TOKEN
NETLIFY_AUTH_TOKEN FLY_API_TOKEN TF_TOKEN_app_terraform_io TF_VAR_db_password
PULUMI_CONFIG_PASSPHRASE PULUMI_ACCESS_TOKEN SENTRY_AUTH_TOKEN SENTRY_DSN DD_API_KEY DD_APP_KEY
NEW_RELIC_LICENSE_KEY OTEL_EXPORTER_OTLP_HEADERS HONEYCOMB_API_KEY SONAR_TOKEN CODECOV_TOKEN
SNYK_TOKEN CYPRESS_RECORD_KEY ADMIN_PASSWORD MY_CREDENTIALS KEY TOKEN SECRET PASSWORD NETRC
SUPABASE_SERVICE_ROLE_KEY MYAPP_KEY_2 VSCODE_GIT_IPC_AUTH_TOKEN
"""
PLAIN = """
PATH HOME USER LANG LC_ALL TERM SHELL PWD OLDPWD EDITOR PAGER DISPLAY XAUTHORITY XDG_RUNTIME_DIR
XDG_SESSION_ID XDG_CONFIG_HOME HISTSIZE HISTCONTROL LS_COLORS LESSKEY COLORTERM TERM_SESSION_ID
SSH_AUTH_SOCK SSH_ASKPASS SSH_ASKPASS_REQUIRE SUDO_ASKPASS GIT_ASKPASS VSCODE_GIT_ASKPASS_NODE
SSH_CONNECTION GPG_AGENT_INFO GPG_TTY GNUPGHOME GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_EDITOR
GIT_CONFIG_KEY_0 TOKENIZERS_PARALLELISM CLAUDE_CODE_MAX_OUTPUT_TOKENS MAX_TOKENS
MAX_THINKING_TOKENS TOKEN_LIMIT KEYBOARD KEYBOARD_LAYOUT XKB_DEFAULT_KEYMAP KEYMAP KEYTIMEOUT
GNOME_KEYRING_CONTROL PYTHON_KEYRING_BACKEND PASSWORD_STORE_DIR BORG_PASSCOMMAND MONKEY TURKEY
HOTKEYS_ENABLED AUTHOR AUTHORS PASSENGER_ROOT COMPASS COMPASS_URL BYPASS BYPASS_CACHE PINNED
OPTIONS SECRETARY COOKIECUTTER_CONFIG OAUTH_CLIENT_ID AUTH_URL AUTH0_DOMAIN NEXTAUTH_URL
NODE_ENV CI GITHUB_ACTIONS GITHUB_REPOSITORY GITHUB_SHA CARGO_HOME JAVA_HOME VIRTUAL_ENV
PYTHONPATH NODE_OPTIONS RUSTFLAGS GOPROXY GOFLAGS HTTP_PROXY https_proxy NO_PROXY KUBECONFIG
AWS_REGION AWS_PROFILE AWS_CONFIG_FILE GOOGLE_CLOUD_PROJECT AZURE_TENANT_ID DOCKER_HOST
PIP_INDEX_URL UV_INDEX_URL SSH_PUBLIC_KEY LANGFUSE_PUBLIC_KEY GPG_KEY PGHOST PGUSER PGDATABASE
DATABASE_URL REDIS_URL DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION SESSION_MANAGER SSL_CERT_FILE
WEBHOOK_PORT OTEL_SERVICE_NAME BUNDLE_PATH BUNDLE_BUILD__NOKOGIRI npm_config_registry
npm_config_user_agent npm_package_name OP_ACCOUNT PATHEXT PATTERN COMPATIBILITY
"""


def test_a_secret_is_recognised_by_its_name():
    """M124"""
    assert [name for name in SECRET.split() if not is_secret_variable(name, "x")] == []


def test_the_variables_of_all_providers_are_secrets():
    names = [name for preset in load_presets({}).values() for name in preset.keys]
    assert [name for name in names if not is_secret_variable(name, "x")] == []


def test_other_names_are_no_secrets():
    """M124"""
    assert [name for name in PLAIN.split() if is_secret_variable(name, "x")] == []


SECRET_VALUES = {
    "DATABASE_URL": "postgres://ada:secret@db/x",
    "REDIS": "redis://:hunter2@db:6379",
    "PIP_INDEX_URL": "https://me:hunter2@example.org/simple https://example.org/x",
    "REPOSITORY": f"https://{'gh' + 'p_'}{'a1B2' * 9}@github.com/a/b",
    "CONNECTION": "Server=db;User Id=ada;Password=hunter2;",
    "DATABASE": "host=db user=ada password=hunter2",
    "AzureWebJobsStorage": f"AccountName=a;AccountKey={'a1B2' * 21}==",
    "DEPLOY": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nx",
    "SERVICE_ACCOUNT": '{"private_key": "-----BEGIN ' + 'PRIVATE KEY-----\\nx"}',
    "BOT": f"{'xox' + 'b'}-123456789012-{'a1B2' * 6}",
    "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic " + "eC1hY2Nlc3M6YTFCMg==",
    "NOTIFY": f"https://{'hooks.slack'}.com/services/T0A1B2C3D/B0A1B2C3D/{'a1B2' * 6}",
}
PLAIN_VALUES = {
    "DATABASE_URL": "postgres://ada@db/x",
    "HTTPS_PROXY": "http://ada:hunter2@proxy:3128",
    "CA_BUNDLE": "-----BEGIN CERTIFICATE-----\nx",
    "USE_AUTH": "true",
    "DB_PASSWORD": "",
    "OUTPUT_TOKENS": "32000",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:*.tar=01;31",
    "GIT_SSH_COMMAND": "ssh -i ~/.ssh/id_ed25519 -o IdentitiesOnly=yes",
    "INVOCATION_ID": "3f1c9a7e5b2d4c6f8a0b1c2d3e4f5a6b",
    "PROMPT_COMMAND": "pwd=$(pwd); printf x",
    "DBUS": "unix:path=/run/user/1000/bus,guid=3f1c9a7e5b2d4c6f8a0b1c2d3e4f5a6b",
}


@pytest.mark.parametrize("environ", [SECRET_VALUES, PLAIN_VALUES])
def test_a_secret_is_recognised_by_its_value(environ):
    secret = {name for name, value in environ.items() if is_secret_variable(name, value)}
    assert secret == (set(SECRET_VALUES) if environ is SECRET_VALUES else set())


@pytest.mark.parametrize(
    ("name", "value", "inherited"),
    [
        ("HTTPS_PROXY", "http://ada:hunter2@proxy:3128", "http://proxy:3128"),
        ("http_proxy", "http://ada:p@ss/w:rd@proxy:3128/", "http://proxy:3128/"),
        ("ALL_PROXY", "socks5h://:hunter2@10.0.0.1:1080", "socks5h://10.0.0.1:1080"),
        ("npm_config_https_proxy", "ada:hunter2@proxy:3128", "proxy:3128"),
        ("http_proxy", "http://proxy:3128", "http://proxy:3128"),
        ("HTTPS_PROXY", "http://ada@proxy:3128", "http://ada@proxy:3128"),
        ("NO_PROXY", "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"),
    ],
)
def test_a_proxy_is_inherited_without_its_login(name, value, inherited):
    """M124: unless the setting lists it, or everything is inherited."""
    assert VariableRules().select_variables({name: value}) == {name: inherited}
    assert VariableRules().is_secret(name, value) == (inherited != value)
    for rules in (VariableRules("filter", ("*_PROXY", "*_proxy")), VariableRules("inherit-all")):
        assert rules.select_variables({name: value}) == {name: value}
    assert not VariableRules("filter", (name,)).is_secret(name, value)


@pytest.mark.parametrize("policy", ["filter", "none", "core-only"])
def test_what_the_setting_lists_is_inherited(policy):
    rules = VariableRules(policy, ("GIT*_TOKEN", "DB_PASSWORD"))
    environ = {"GITHUB_TOKEN": "a", "GITLAB_TOKEN": "b", "DB_PASSWORD": "c", "NPM_TOKEN": "d"}
    assert rules.select_variables(environ) == {
        "GITHUB_TOKEN": "a",
        "GITLAB_TOKEN": "b",
        "DB_PASSWORD": "c",
    }

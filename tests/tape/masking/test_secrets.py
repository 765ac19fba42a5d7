"""What is masked as a secret, in every dress it comes in, and what has to stay."""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode
from itertools import count

import pytest
from msgspec import Raw

from tape.archive.export import export_tape
from tape.formats.registry import FORMATS
from tape.masking.secrets import mask_json, mask_text
from tape.model.entries import Assistant, Error, Text, ToolCall, ToolResult, User
from tape.pages.markdown import MaskCount, render_markdown
from tape.sessions.arrays import export_array
from tests.tape import making

DICE = random.Random(7)
LETTERS = string.ascii_letters + string.digits


def made_up(size, chars=LETTERS):
    """Return what a machine might have drawn: a digit and a letter of each case are in it."""
    start = "a1B" if chars == LETTERS else ""
    return start + "".join(DICE.choices(chars, k=size - len(start)))


def hexes(size):
    return "a1" + made_up(size - 2, "0123456789abcdef")


A = made_up
UUID = "-".join(hexes(size) for size in (8, 4, 4, 4, 12))
KEYS = {
    **{f"github {p}": p + A(36) for p in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")},
    "github pat": f"github_pat_{A(22)}_{A(59)}",
    **{f"gitlab {p}": f"{p}-{A(20)}" for p in ("glpat", "gldt", "glrt", "glptt", "glcbt", "gloas")},
    **{f"slack {p}": f"{p}-123456789012-123456789012-{A(24)}" for p in ("xoxb", "xoxp", "xoxa-2")},
    "slack r": f"xoxr-{A(24)}",
    "slack s": f"xoxs-{A(24)}",
    "slack app": f"xapp-1-A0123456789-1234567890123-{hexes(64)}",
    **{f"stripe {p}": p + A(24) for p in ("sk_live_", "rk_live_", "sk_test_", "whsec_")},
    "aws": "AKIA" + A(16, string.ascii_uppercase + "234567"),
    "aws temporary": "ASIA" + A(16, string.ascii_uppercase + "234567"),
    "google": "AIza" + A(35),
    "google oauth": f"ya29.{A(60)}",
    "google client": f"GOCSPX-{A(28)}",
    "azure client": f"{A(3)}8Q~{A(34)}",
    "openai": "sk-" + A(48),
    "openai project": f"sk-proj-{A(48)}_{A(20)}",
    "openai session": "sess-" + A(40),
    "anthropic": f"sk-ant-api03-{A(80)}-{A(10)}AA",
    "openrouter": f"sk-or-v1-{hexes(64)}",
    "groq": "gsk_" + A(52),
    "xai": "xai-" + A(80),
    "huggingface": "hf_" + A(34),
    "replicate": "r8_" + A(37),
    "perplexity": "pplx-" + A(48),
    "npm": "npm_" + A(36),
    "pypi": f"pypi-AgEIcHlwaS5vcmc{A(120)}",
    "docker": f"dckr_pat_{A(27)}",
    "digitalocean": f"dop_v1_{hexes(64)}",
    "heroku": f"HRKU-{UUID}",
    "sendgrid": f"SG.{A(22)}.{A(43)}",
    "twilio": f"SK{hexes(32)}",
    "twilio account": f"AC{hexes(32)}",
    "mailgun": f"key-{hexes(32)}",
    "mailchimp": f"{hexes(32)}-us12",
    "telegram": f"123456789:AA{A(33)}",
    "discord": f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{A(27)}",
    "shopify": f"shpat_{hexes(32)}",
    "square": f"sq0atp-{A(22)}",
    "square secret": f"sq0csp-{A(43)}",
    "databricks": f"dapi{hexes(32)}",
    "linear": f"lin_api_{A(40)}",
    "notion": f"ntn_{A(46)}",
    "notion before": f"secret_{A(43)}",
    "bedrock": f"ABSK{A(130)}=",
    "vercel": f"vcp_{A(56)}",
    "render": f"rnd_{A(32)}",
    "neon": f"napi_{hexes(64)}",
    "posthog": f"phx_{A(43)}",
    "bitbucket": f"ATBB{A(32)}",
    "bitbucket token": f"ATCTT3xFfGN0{A(100)}",
    "airtable": f"pat{A(14)}.{hexes(64)}",
    "asana": f"1/1204567890123456:{hexes(32)}",
    "asana two": f"2/1204567890123456/1204567890123457:{hexes(32)}",
    "hubspot": f"pat-na1-{UUID}",
    "mapbox": f"sk.eyJ{A(60)}.{A(22)}",
    "resend": f"re_{A(8)}_{A(24)}",
    "artifactory": f"AKCp{A(69)}",
    "artifactory reference": f"cmVmdGtuOj{A(54)}",
    "nuget": f"oy2{hexes(43)}",
    "crates.io": f"cio{A(32)}",
    "paypal": f"access_token$production${hexes(16)}${hexes(32)}",
    "plaid": f"access-production-{UUID}",
    "together": f"tgp_v1_{A(43)}",
    "elevenlabs": f"sk_{hexes(48)}",
    "langfuse": f"sk-lf-{UUID}",
    "pinecone": f"pcsk_{A(6)}_{A(60)}",
    "firecrawl": f"fc-{hexes(32)}",
    "e2b": f"e2b_{hexes(40)}",
    "modal": f"as-{A(22)}",
    "gcs": "GOOG1E" + A(55, string.ascii_uppercase + "234567"),
    "stripe organization": f"sk_org_live_{A(40)}",
    "fireworks": f"fw_{A(24)}",
    "jwe": f"eyJ{A(40)}..{A(16)}.{A(80)}.{A(22)}",
    "figma": f"figd_{A(40)}",
    "vault": f"hvs.{A(90)}",
    "terraform": f"{A(14)}.atlasv1.{A(67)}",
    "supabase": f"sbp_{hexes(40)}",
    "sentry": f"sntrys_{A(100)}",
    "newrelic": f"NRAK-{A(27, string.ascii_uppercase + string.digits)}",
    "grafana": f"glsa_{A(32)}_{hexes(8)}",
    "age": f"AGE-SECRET-KEY-1{A(58, string.ascii_uppercase + string.digits)}",
    "jwt": f"eyJ{A(30)}.eyJ{A(60)}.{A(43)}",
    "postman": f"PMAK-{hexes(24)}-{hexes(34)}",
    "rubygems": f"rubygems_{hexes(48)}",
    "atlassian": f"ATATT3{A(180)}",
}
"""Keys that are known by how they look, wherever they stand."""
S = made_up(24)
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzKEY1+a"
SURROUNDED = {
    "X-Api-Key: {}": S,
    "x-goog-api-key: {}": S,
    "x-api-key={}": S,
    '-H "x-api-key: {}"': S,
    "Ocp-Apim-Subscription-Key: {}": hexes(32),
    "PRIVATE-TOKEN: {}": S,
    "X-Auth-Token: {}": S,
    "X-Vault-Token: {}": S,
    "api-key: {}": S,
    "password: {}": "hunter2!",
    "password:  {}\nuser: x": "correcthorse",
    "db:\n  password: {}\n": "s3cr3tpw",
    'password: "{}"': "hunter2",
    "MYSQL_PWD={} mysql": "hunter2",
    "PGPASSWORD={} psql -h x": "hunter2",
    "export DB_PASS={}": "hunter2",
    "Password = {}": "hunter2",
    "password={}&x=1": "hunter2",
    '"userPassword": "{}"': "hunter2",
    "'db_password' => '{}'": "hunter2",
    "deploy --token={}": S,
    "deploy --token {}": S,
    "deploy --api-key {}": S,
    "x --password {} -v": "hunter2",
    "x --password={}": "hunter",
    "x --db-password '{}'": "hunter2",
    "mysql -u root -p{} db": "hunter2",
    "mysqldump --single -u root -p{}": "hunter2",
    "sshpass -p {} ssh x": "hunter2",
    "sshpass -p '{}' ssh x": "hunter2",
    "docker login -u me -p {} registry.example": "hunter2",
    "redis-cli -h x -a {} ping": "hunter2",
    "curl -u user:{} https://x": "hunter2",
    "curl -s --user 'user:{}' https://x": "hunter2",
    "curl -H 'Authorization: token {}' https://x": S,
    "curl -H 'Cookie: a=b; sid={}' x": S,
    "curl -b 'sid={}' x": S,
    "Cookie: session={}; theme=dark": S,
    "Set-Cookie: sid={}; HttpOnly; Path=/": S,
    '"cookie": "sid={}"': S,
    "Authorization: Bearer {}": S,
    "Authorization: Basic {}": "dXNlcjpodW50ZXIy",
    "Authorization: {}": S,
    "Proxy-Authorization: Basic {}": "dXNlcjpodW50ZXIy",
    "Authorization: ApiKey {}": S,
    "//registry.npmjs.org/:_authToken={}": UUID,
    "_auth={}": "dXNlcjpodW50ZXIy",
    "https://user:{}@host/x": "hunter2",
    "https://{}@github.com/a/b": S,
    "redis://:{}@host:6379": "hunter2",
    "mongodb+srv://u:{}@c.example/db": "p4ss-w0rd",
    "postgresql://u:{}@h/db?sslmode=require": "p4ssw0rd",
    "https://x/y?api_key={}": S,
    "https://x/y?a=1&access_token={}": S,
    "https://a.blob.core.windows.net/c?sv=1&sig={}": f"{A(30)}%2B{A(10)}%3D",
    "DefaultEndpointsProtocol=https;AccountKey={};x": A(86) + "==",
    "Endpoint=sb://x/;SharedAccessKey={}": A(43) + "=",
    "aws_secret_access_key = {}": AWS_SECRET,
    "AWS_SECRET_ACCESS_KEY={}": AWS_SECRET,
    "aws_session_token = {}": A(200),
    '"secretAccessKey":"{}"': AWS_SECRET,
    "https://hooks.slack.com/services/{}": f"T01234567/B01234567/{A(24)}",
    "https://discord.com/api/webhooks/123456789012345678/{}": A(68),
    "HEROKU_API_KEY={}": UUID,
    "machine api.x.org\n  login me\n  password {}": "hunter2",
    "machine api.x.org login me password {}": "hunter",
    "client_secret: {}": S,
    "clientSecret = '{}'": S,
    '"accessToken" : "{}"': S,
    "[auth]\nsecret_key = {}": S,
    "SECRET_KEY_BASE={}": hexes(64),
    "credential: {}": S,
    "<password>{}</password>": "hunter2",
    '<add key="DbPassword" value="{}"/>': "hunter2",
    "TWILIO_AUTH_TOKEN={}": hexes(32),
    'token := "{}"': S,
    "users:\n- user:\n    client-key-data: {}\n": A(200) + "==",
    '{"auths":{"ghcr.io":{"auth":"{}"}}}': "YWRhOmh1bnRlcjI=",
    "db.example.org:5432:app:ada:{}": "hunter2",
    "*:*:*:ada:{}": "hunter2",
    "ada:{}": f"$apr1${A(8)}${A(22)}",
    "root:{}:19000:0:99999:7:::": f"$6${A(16)}${A(86)}",
    "ada:{} ": f"$2y$10${A(53)}",
    "ada:{SHA}{}": A(27) + "=",
    "define('AUTH_KEY', '{}');": "x|Z9 k-#q@" + A(40),
    "define( 'DB_PASSWORD', '{}' );": "hunter2",
    "APP_KEY=base64:{}": A(43) + "=",
    "api_key: >-\n  {}\n": S,
    "db_password: |\n    {}\n": "hunter2!",
    'co = cohere.Client("{}")': A(40),
    "m = mistral.Client('{}')": A(32),
    "twilio.rest.Client(sid, '{}')": hexes(32),
    "https://x.webhook.office.com/webhookb2/{}": f"{UUID}@{UUID}/IncomingWebhook/{hexes(32)}/x",
    "zhipu = ZhipuAI('{}')": f"{hexes(32)}.{A(16)}",
    "echo {} | base64 -d >> .env": b64encode(f"API_KEY={S}".encode()).decode(),
    'data:\n  env: "{}"': b64encode(f"DB_PASSWORD=hunter2\nTOKEN={S}\n".encode()).decode(),
    "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----": A(64),
    "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n": A(64),
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----": A(64),
    '"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n"': A(64),
}
"""Secrets that only what stands around them tells."""
CASES = {
    **{kind: (f"it is {key} now", key) for kind, key in KEYS.items()},
    **{form: (form.replace("{}", secret), secret) for form, secret in SURROUNDED.items()},
}


@pytest.mark.parametrize("case", CASES)
def test_a_secret_is_masked_in_text_and_in_json_within_json(case):
    text, secret = CASES[case]
    for dressed in (text, json.dumps(text), json.dumps(json.dumps({"a": [text]}))):
        found = mask_text(dressed)
        assert secret not in found.text, found
        assert mask_text(found.text) == (found.text, 0)
        data = json.dumps({"content": [dressed]}).encode()
        assert secret.encode() not in mask_json(data).data
        json.loads(mask_json(data).data)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_masked_in_a_file_name_and_as_an_argument(kind):
    key = KEYS[kind]
    for text in (f"/tmp/x_{key}.txt" if "." not in key else f"/tmp/{key}/x", f"run '{key}'", key):
        assert key not in mask_text(text).text, text
        assert mask_text(text).secrets == 1, mask_text(text)


@pytest.mark.parametrize(
    "kind", [kind for kind in KEYS if kind.split()[0] in {"github", "anthropic", "openai", "groq"}]
)
@pytest.mark.parametrize("broken", ["\n", "\r\n", "\\\n", "\n    "])
def test_a_key_is_masked_where_a_line_was_broken_in_it(kind, broken):
    key = KEYS[kind]
    text = f"x {key[:16]}{broken}{key[16:]}\nThe next line stays."
    found = mask_text(text).text
    assert key[16:] not in found
    assert found.endswith("\nThe next line stays.")


STAYS = [
    *(
        "0123456789abcdef" * 2,
        "a1" * 20,
        "3f" * 32,
        UUID,
        f"commit {hexes(40)}",
        f"sha256:{hexes(64)}",
    ),
    f'"integrity": "sha512-{A(86)}=="',
    f'resolved "https://registry.yarnpkg.com/a/-/a-1.0.tgz#{hexes(40)}"',
    f'checksum = "{hexes(64)}"',
    f"hash: {hexes(64)}",
    f"etag: {hexes(32)}",
    f"data:image/png;base64,{A(4000)}",
    *("token: int", "token: str = None", "def f(token: str, password: str) -> None:", "token_type"),
    *("password = get_password()", "password = getpass.getpass()", "password: getpass()"),
    *("password = os.environ['X_1']", "password=self.password1", "password = user.password2"),
    *("secret = settings.SECRET_1", "token = tokens[0]", "token = next_token2", "token=token"),
    *('"tokens": 123', '"total_tokens":12345678', "max_tokens=4096", "--max-tokens 4096"),
    *(
        '"password": "Password"',
        '"password": "Passwort"',
        '"password": "пароль"',
        '"password":"密码"',
    ),
    *('"password": "Enter your password"', '"forgot_password": "Forgot your password?"'),
    *("password: string", "password?: string;", "password: required", "password: Optional[str]"),
    *("password VARCHAR(255)", "password: {type: string}", "const password = ''", 'password=""'),
    *("PASSWORD=${PASSWORD}", "PASSWORD=$(pass show x)", "--token $TOKEN", '--token="$TOKEN"'),
    *("--token=<your-token>", "--password-stdin", "use --password to log in", "TOKEN={{ token }}"),
    *("api_key: YOUR_API_KEY", "api_key=your-api-key-1", "OPENAI_API_KEY=sk-...", "sk-learn"),
    *("Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "Authorization: required"),
    *("curl -u user https://x", "curl https://example.com:8080/a", "mysql -u root -p db"),
    *("mysql -u root -p", "docker run -p 8080:80 x", "mkdir -p a/b", "ssh -p 2222 host"),
    *(
        "git@github.com:a/b.git",
        "https://example.com:443/a@b",
        "ssh://git@host/x",
        "http://a/b?key=1",
    ),
    *("PWD=/home/me/project1", "OLDPWD=/srv/x2", "keyboard=us101-intl", "monkey: banana123456"),
    *(
        "sort_key=created_at_2024_01_01",
        "primary_key: id_2024_12345",
        "next_page_token=CAUQAA12345678",
    ),
    *("the secret of it: patience", "secretary: 1234567890ab", "tokenizer=cl100k_base_v2_0001"),
    *(
        "compass: 1234 north",
        "bypass=1234567",
        "surpass: 100%",
        "import secrets",
        "key-value store",
    ),
    *("key: value", "foreign key (a) references b", "Cookie: none", "cookie policy: strict=yes"),
    *(
        "cookies = {}",
        "response.set_cookie(key, value)",
        "login me",
        "the login password is needed",
    ),
    *("from x import Token; Token(1234)", "if token == '': pass", "assert token.value == 12345678"),
    *(
        "pypi-attestations==0.0.12",
        "npm_config_registry=https://x",
        "hf_hub_download(repo)",
        "r8_x",
    ),
    *("0xdeadbeefdeadbeefdeadbeefdeadbeef", "AKIA", "xoxb-", "eyJhbGciOi", "SKU12345", "ACME Corp"),
    *("<token>", "<password></password>", "<input name='password' value=''>", "Bearer token"),
    *(
        "c_12345678_0",
        "toolu_01A09q90qw90lq917835lq9",
        "call_abc123DEF456ghi789",
        "msg_01XFDUDYJgAACz",
    ),
    *(
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
    ),
    *("src/a.py:12:5:error:foo1", "localhost:5432:8080", "a:*:b", "re_compile_pattern_list_of_x"),
    *("as-is-and-nothing-more-than-it", "fc-cache -f", "pattern.match", "cost: $5.00", "$1 and $2"),
    *(
        '"auth": "providers"',
        '"auth": "none"',
        '"auth": true',
        "define('WP_DEBUG', false);",
        "APP_KEY=",
        "sk_buff *skb",
    ),
    *(
        "define('AUTH_KEY', 'put your unique phrase here');",
        "description: |\n  a long text of words",
    ),
    b64encode(b"a plain sentence of some length, with no secret").decode(),
    *("fw_version_info", "rnd_seed = 1", "pat-pat", "access-control-allow-origin", "sk.estimator"),
    *(f"{hexes(32)}.png", f"{hexes(32)}.tar.gz", f"app.{hexes(32)}.chunk.js", f"{hexes(32)}.js"),
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ me@host",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
]
"""What looks like a secret to a hasty reader."""


@pytest.mark.parametrize("text", STAYS)
def test_what_is_no_secret_stays(text):
    for dressed in (text, json.dumps(text)):
        assert mask_text(dressed) == (dressed, 0)
        data = json.dumps({"content": [dressed]}).encode()
        assert mask_json(data) == (data, 0)


def test_all_forms_of_an_export_mask_alike(tmp_path):
    ticks = count(making.DAY, 1_000_000)
    store = making.store_in(tmp_path / "store", lambda: next(ticks))
    said = [text for text, _ in CASES.values()]
    with store.create(making.beginning("x")) as tape:
        with tape.writer() as writer:
            for number, text in enumerate(said):
                call = f"c_{number:08x}_0"
                args = json.dumps({"command": text}).encode()
                writer.append(User((Text(text),)))
                tool = ToolCall(id=call, name="bash", args=Raw(args))
                writer.append(Assistant((Text(text), tool), model="m"))
                writer.append(ToolResult(call, "bash", (Text(text),)))
                writer.append(Error("x", text))
        lines: list[bytes] = []
        export_tape(tape, lines.append)
        page = "\n".join(render_markdown(tape, tape.head(), masks=MaskCount(), skipped=pytest.fail))
        forms = {"jsonl": b"".join(lines).decode(), "md": page}
        for name in FORMATS:
            forms[name] = export_array(
                tape, tape.head(), name, skipped=pytest.fail
            ).request.decode()
    missed = [
        (form, case)
        for form, text in forms.items()
        for case, (_, secret) in CASES.items()
        if secret not in {"hunter", "correcthorse"} and secret in text
    ]
    assert missed == [], sorted({c for _, c in missed})


PIECES = [
    *("password: ", "token=", "api_key ", '"', "\\", "curl ", "mysql -", "login ", "cookie: a=b;"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "https://",
        "a://b:",
        "--a-",
        "--token ",
        "ghp_",
        "sk-",
        "eyJ",
    ),
    *(
        "[MNO].",
        "Authorization: ",
        "=",
        ":",
        "secret\\",
        "<password>",
        "key='password' value='",
        "a1",
    ),
    *(
        "key-",
        "docker login ",
        "redis-cli ",
        "machine login ",
        "MTA.",
        "x-amz-signature=",
        "a.",
        "1",
    ),
    *("heroku", "ghp_a\n", "password\n", "A1b", "-", "_", "EAAA", "SG.", " ", "\n", "pass pass="),
]


@pytest.mark.slow
@pytest.mark.timeout(150)  # hundreds of times what it takes; by the square it would take longer
@pytest.mark.parametrize("piece", PIECES)
def test_a_text_made_to_be_slow_is_read_in_proportion_to_its_length(piece):
    mask_text(piece * (250_000 // len(piece)))

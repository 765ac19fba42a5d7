"""Each row of the table of likely fixes, by what a host says; and whole errors on loopback."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from msgspec.structs import replace

from gong.credentials import Credentials
from gong.llm import Client
from gong.llm.models import load_presets, load_tables
from gong.llm.wires.likely_fixes import RefusedCall, find_fix
from tests.wires.server import WireServer, events_of, json_reply
from tests.wires.table import HELLO

AZURE = ("azure", "https://r.openai.azure.com/openai/v1")
CLASSIC = ("azure-classic", "https://r.openai.azure.com/openai")
MANTLE = ("bedrock", "https://bedrock-mantle.eu-west-1.api.aws/openai/v1")
RUNTIME = ("bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic")
VERTEX = ("vertex", "https://aiplatform.googleapis.com/v1")
DATABRICKS = ("databricks", "https://adb-1.azuredatabricks.net/serving-endpoints")
CLOUDFLARE = ("cloudflare", "https://api.cloudflare.com/client/v4/accounts/a/ai/v1")
PROFILE = "profile work of AWS"
SAID = [
    # where, status, what the host says, where the key is from, the beginning of the fix
    (
        AZURE,
        404,
        (
            "The API deployment for this resource does not exist. If you created the deployment "
            "within the last 5 minutes, please wait a moment and try again. DeploymentNotFound"
        ),
        "AZURE_OPENAI_API_KEY",
        "there is no deployment dep there: choose another with -m azure/DEPLOYMENT, or",
    ),
    (
        ("azure", "https://r.openai.azure.com/openai"),
        404,
        "Resource not found 404",
        "",
        "the v1 addresses of Azure end in /openai/v1: set base_url of [providers.azure] so",
    ),
    (
        CLASSIC,
        404,
        "Resource not found 404",
        "",
        "the resource, the deployment dep or the api-version 2024-10-21 is wrong",
    ),
    (
        AZURE,
        400,
        "The requested operation is unsupported. OperationNotSupported",
        "",
        "dep does not speak this API: set api of [providers.azure] to openai-chat",
    ),
    (
        AZURE,
        401,
        "Access denied: the audience of the token is invalid. 401",
        "AZURE_OPENAI_AD_TOKEN",
        "the token is for another service: get it with az account get-access-token --resource",
    ),
    (
        AZURE,
        401,
        (
            "The principal `x` lacks the required data action "
            "`Microsoft.CognitiveServices/accounts/OpenAI/responses/write` PermissionDenied"
        ),
        "key_command of azure",
        "your account may not call it: ask for the role Cognitive Services OpenAI User",
    ),
    (
        AZURE,
        403,
        "Access denied due to Virtual Network/Firewall rules.",
        "",
        "the resource takes calls from its own network only",
    ),
    (
        AZURE,
        401,
        "Unauthorized. Access token is missing, invalid or expired.",
        "key_command of azure",
        "the token has expired, or is of another tenant: run az login",
    ),
    (
        AZURE,
        401,
        "Access denied due to invalid subscription key or wrong API endpoint.",
        "AZURE_OPENAI_API_KEY",
        "a key belongs to one resource: see whether https://r.openai.azure.com/openai/v1 is its",
    ),
    (AZURE, 404, "Resource not found", "", "the resource knows no dep at this address"),
    (
        MANTLE,
        400,
        (
            "Invocation of model ID dep with on-demand throughput isn\u2019t supported. Retry your "
            "request with the ID or ARN of an inference profile that contains this model."
        ),
        "",
        "this model is called by an inference profile: -m bedrock/eu.dep",
    ),
    (
        MANTLE,
        404,
        "model `dep` isn't supported on this route",
        "",
        (
            "this model is served below another path: set base_url of [providers.bedrock] to "
            "https://bedrock-mantle.eu-west-1.api.aws/v1"
        ),
    ),
    (
        RUNTIME,
        400,
        "The provided model identifier is invalid. ValidationException",
        "",
        "eu-west-1 has no dep: see whether the id has its version and, at bedrock-runtime, the",
    ),
    (
        RUNTIME,
        403,
        "You don't have access to the model with the specified model ID.",
        PROFILE,
        "ask for access to dep in the console of Bedrock, in eu-west-1",
    ),
    (
        RUNTIME,
        403,
        "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel on resource",
        PROFILE,
        "a policy of IAM does not allow it: ask for bedrock:InvokeModelWithResponseStream",
    ),
    (
        RUNTIME,
        403,
        "The security token included in the request is expired ExpiredTokenException",
        PROFILE,
        "the login has expired: run aws sso login --profile work",
    ),
    (
        MANTLE,
        403,
        "Authentication failed: Bearer Token has expired",
        "AWS_BEARER_TOKEN_BEDROCK",
        "the key of Bedrock has expired: make a new one in the console, and set AWS_BEARER",
    ),
    (
        RUNTIME,
        403,
        "The security token included in the request is expired",
        "AWS_ACCESS_KEY_ID",
        "the key has expired: log in again",
    ),
    (
        RUNTIME,
        403,
        "The request signature we calculated does not match the signature you provided.",
        PROFILE,
        "the secret is not that of the key's id, or the region is not eu-west-1",
    ),
    (
        RUNTIME,
        403,
        "The security token included in the request is invalid. UnrecognizedClientException",
        PROFILE,
        "AWS does not know this key: see whether it is of another account",
    ),
    (MANTLE, 403, "Forbidden", PROFILE, "see whether the key may use dep in eu-west-1"),
    (
        RUNTIME,
        404,
        "UnknownOperationException",
        PROFILE,
        "eu-west-1 has no dep: see whether the id",
    ),
    (
        RUNTIME,
        503,
        "Bedrock is unable to process your request.",
        PROFILE,
        "a profile of several regions may serve it: -m bedrock/eu.dep",
    ),
    (RUNTIME, 500, "InternalServerException", "", "a profile of several regions may serve it"),
    (
        VERTEX,
        404,
        (
            "Publisher Model `projects/p-1/locations/global/publishers/anthropic/models/dep` was "
            "not found or your project does not have access to it. NOT_FOUND"
        ),
        "",
        "eu-west-1 has no dep, or project p-1 has not enabled it in Model Garden: set another",
    ),
    (
        VERTEX,
        403,
        "Vertex AI API has not been used in project 7 before or it is disabled. PERMISSION_DENIED",
        "",
        "run gcloud services enable aiplatform.googleapis.com --project p-1",
    ),
    (
        VERTEX,
        403,
        "The aiplatform.googleapis.com API requires a quota project, which is not set by default.",
        "",
        "set GOOGLE_CLOUD_QUOTA_PROJECT to a project of yours",
    ),
    (
        VERTEX,
        403,
        "This API method requires billing to be enabled.",
        "",
        "turn billing on for project p-1",
    ),
    (
        VERTEX,
        403,
        "Permission 'aiplatform.endpoints.predict' denied on resource '//x'",
        "",
        "see whether p-1 is your project's id, and ask for its role Vertex AI User",
    ),
    (
        VERTEX,
        401,
        "Request had invalid authentication credentials. UNAUTHENTICATED",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        "tokens of Google end after an hour: get a new one, or set key_command",
    ),
    (
        VERTEX,
        401,
        "Request had invalid authentication credentials. UNAUTHENTICATED",
        "the login of gcloud",
        "run gcloud auth application-default login",
    ),
    (VERTEX, 503, "The service is currently unavailable.", "", "another location may serve it"),
    (DATABRICKS, 404, "ENDPOINT_NOT_FOUND", "", "the workspace has no serving endpoint dep"),
    (DATABRICKS, 403, "Invalid access token.", "", "see whether DATABRICKS_HOST is the workspace"),
    (CLOUDFLARE, 404, "No such model", "", "see whether the account is right, and the model is"),
    (CLOUDFLARE, 401, "Authentication error 10000", "", "see whether the token is of this account"),
    (
        ("ollama", "http://localhost:11434/v1"),
        404,
        "model 'dep' not found",
        "",
        "run ollama pull dep",
    ),
    (
        ("llamacpp", "http://localhost:8080/v1"),
        503,
        "Loading model",
        "",
        "the model is being loaded: wait a moment",
    ),
    (
        ("openrouter", "https://openrouter.ai/api/v1"),
        404,
        "No endpoints found matching your data policy",
        "",
        "no host that your settings allow has it",
    ),
    (
        ("openai", "https://api.openai.com/v1"),
        403,
        "Country, region, or territory not supported unsupported_country_region_territory",
        "",
        "the provider does not serve where you are: use another (-m)",
    ),
    (
        ("mine", "https://h.example/v1/chat/completions"),
        404,
        "Not Found",
        "",
        "base_url of [providers.mine] must end before this part: remove it",
    ),
    (
        ("mine", "https://h.example/v1", "anthropic-messages"),
        404,
        "Not Found",
        "",
        "the path /v1/messages is added to base_url: remove /v1 from its end",
    ),
    (
        ("mine", "https://h.example"),
        404,
        "Not Found",
        "",
        "the address has no path: most hosts want /v1 at the end of base_url of [providers.mine]",
    ),
    (
        ("openai", "https://api.openai.com/v1"),
        404,
        "The model `dep` does not exist or you do not have access to it. model_not_found",
        "",
        "see which models your key may use, and choose one with -m openai/MODEL",
    ),
    (("mine", "https://h.example/v1"), 404, "", "", "see whether the address and the model's name"),
    (("mine", "https://h.example/v1"), 403, "", "", "see whether this key may use the model, and"),
]


def refuse(where, status, words, source, gap=None):
    provider, endpoint, *api = where
    api = api[0] if api else "openai-chat"
    return RefusedCall(
        *(status, words, provider, api, endpoint, "gpt-x", "dep", "eu-west-1", "p-1"),
        *("2024-10-21", source, gap),
    )


@pytest.mark.parametrize(("where", "status", "words", "source", "fix"), SAID)
def test_what_a_host_says_leads_to_what_mends_it(where, status, words, source, fix):
    """M229."""
    assert find_fix(refuse(where, status, words, source)).startswith(fix)


def test_every_row_of_the_table_has_a_case():
    fixes = [row["fix"] for row in load_tables("fixes")["fixes"]]
    texts = [find_fix(refuse(*case[:4])) for case in SAID]
    assert [fix for fix in fixes if not any(matches(fix, text) for text in texts)] == []


def matches(template, text):
    """Return whether a text is a filled-in template."""
    return all(part in text for part in template.replace("}", "{").split("{")[::2])


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "too many requests"), (400, "prompt is too long"), (402, "no credits"), (422, "")],
)
def test_limits_and_bad_requests_have_words_of_their_own(status, words):
    assert find_fix(refuse(("mine", "https://h.example/v1"), status, words, "")) == ""


@pytest.mark.parametrize(
    ("gap", "words", "said"),
    [
        (3600, "Signature expired: 20261128T1", "the clock of this machine is 60 min behind the"),
        (-3600, "Signature not yet current", "the clock of this machine is 60 min ahead of the"),
        (100, "Signature expired: 20261128T1", "the login has expired"),
        (3600, "not authorized to perform", "a policy of IAM does not allow it"),
    ],
)
def test_a_clock_that_is_wrong_goes_first(gap, words, said):
    assert find_fix(refuse(RUNTIME, 403, words, PROFILE, gap)).startswith(said)


async def error_of(name, environ, reply, row=None):
    """Return the text of the error of a call that a host on loopback refuses."""
    provider, _, _ = name.partition("/")
    async with WireServer(reply) as server:
        filled = json.loads(json.dumps(row or {"base_url": "URL"}).replace("URL", server.url))
        environ = {"HOME": "/nonexistent", **environ}
        keys = Credentials.from_environ(environ)
        client = Client.from_env(
            environ,
            presets=load_presets({provider: filled}),
            find_key=keys.key,
            find_source=keys.name_source,
        )
        made, model = client.resolve(name)
        (failed,) = await events_of(made, replace(HELLO, model=model))
        return str(failed.error).replace(server.url, "URL")


BEDROCK = {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "ABSK-key"}
WHOLE = {
    401: (
        "azure/gpt-4o",
        {"AZURE_OPENAI_API_KEY": "key-of-azure"},
        {"base_url": "URL", "deployments": {"gpt-4o": "mine"}},
        {"error": {"code": "401", "message": "Access denied due to invalid subscription key"}},
        (
            "azure API error (401): Access denied due to invalid subscription key; the key from "
            "AZURE_OPENAI_API_KEY was refused for gpt-4o (deployment mine) at URL/openai/v1: a key "
            "belongs to one resource: see whether URL/openai/v1 is its own"
        ),
    ),
    403: (
        "bedrock/anthropic.claude-x",
        BEDROCK,
        None,
        {"message": "You don't have access to the model with the specified model ID."},
        (
            "bedrock API error (403): You don't have access to the model with the specified model "
            "ID.; asked for anthropic.claude-x (in eu-west-1) at URL/anthropic with the key from "
            "AWS_BEARER_TOKEN_BEDROCK: ask for access to anthropic.claude-x in the console of "
            "Bedrock, in eu-west-1"
        ),
    ),
    404: (
        "azure-classic/gpt-4o",
        {"AZURE_API_KEY": "key-of-azure", "OPENAI_API_VERSION": "2020-01-01"},
        {"base_url": "URL", "deployments": {"gpt-4o": "mine"}},
        {"error": {"code": "404", "message": "Resource not found"}},
        (
            "azure-classic API error (404): Resource not found; asked for gpt-4o (deployment mine) "
            "at URL/openai/deployments/mine/chat/completions with the key from AZURE_API_KEY: the "
            "resource, the deployment mine or the api-version 2020-01-01 is wrong: set api_version "
            "of [providers.azure-classic] (OPENAI_API_VERSION), or use azure/gpt-4o, which needs "
            "none"
        ),
    ),
    500: (
        "vertex/claude-x",
        {"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29", "CLOUD_ML_REGION": "us-east5"},
        {"base_url": "URL", "project": "p-1"},
        {"error": {"code": 500, "message": "Internal error encountered.", "status": "INTERNAL"}},
        (
            "vertex API error (500): Internal error encountered.; try again, or switch to another "
            "provider or model (-m, /model); asked for claude-x (in us-east5) at URL/v1 with the "
            "key from GOOGLE_OAUTH_ACCESS_TOKEN: another location may serve it "
            "(GOOGLE_CLOUD_LOCATION=global)"
        ),
    ),
    503: (
        "bedrock/qwen.qwen3",
        BEDROCK,
        None,
        {"message": "Bedrock is unable to process your request."},
        (
            "bedrock API error (503): Bedrock is unable to process your request.; it is down or "
            "overloaded: try again later; asked for qwen.qwen3 (in eu-west-1) at URL/openai/v1 "
            "with the key from AWS_BEARER_TOKEN_BEDROCK: a profile of several regions may serve "
            "it: -m bedrock/eu.qwen.qwen3"
        ),
    ),
}


@pytest.mark.parametrize("status", WHOLE)
async def test_an_error_names_address_deployment_region_key_and_fix(status):
    """M229."""
    name, environ, row, body, text = WHOLE[status]
    assert await error_of(name, environ, json_reply(status, body), row) == text


async def test_a_signature_by_a_clock_that_is_off_by_an_hour_says_so():
    """The host's own clock is in its answer."""
    host_time = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    words = "Signature expired: 20261128T190000Z is now earlier than 20261128T195500Z"
    environ = {
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "AK",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    text = await error_of(
        "bedrock/qwen.qwen3", environ, json_reply(403, {"message": words}, date=host_time)
    )
    assert text.endswith(
        "asked for qwen.qwen3 (in eu-west-1) at URL/openai/v1 with the key from AWS_ACCESS_KEY_ID: "
        "the clock of this machine is 60 min behind the host's: set it"
    )

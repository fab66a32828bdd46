"""I7: a key is hidden however it is written, and a line of the log holds nothing else it should not."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.guards import HIDDEN, loggable, without_keys

# I7: a key is hidden whatever stands before its name and however it is written; ordinary sentences stay.

KEY = "q8Zr2Lw9"

NAMES = [
    "OPENAI_API_KEY",
    "DB_PASSWORD",
    "refresh_token",
    "accessToken",
    "x-goog-api-key",
    "X-Auth-Token",
    "api key",
    "apikey",
    "aws_secret_access_key",
    "client_secret",
    "SECRET_KEY_BASE",
    "STRIPE_KEY",
    "API_KEY_2",
    "spring.datasource.password",
    "PGPASSWORD",
    "MYSQL_PWD",
    "passwd",
    "passphrase",
    "AccountKey",
    "SharedAccessKey",
    "Ocp-Apim-Subscription-Key",
    "sessionid",
    "session_id",
    "jwt",
    "credentials",
    "authorization",
    "Proxy-Authorization",
    "Cookie",
    "Set-Cookie",
    "密码",
    "密碼",
    "口令",
    "密钥",
    "令牌",
    "API密钥",
    "パスワード",
    "APIキー",
    "トークン",
    "пароль",
    "токен",
    "секретный ключ",
    "contraseña",
    "clave",
    "mật khẩu",
    "รหัสผ่าน",
]
Writing = Callable[[str, str], str]
WRITINGS: dict[str, Writing] = {
    "env": lambda name, key: f"env {name}={key} HOME=/root",
    "export": lambda name, key: f'export {name}="{key}"',
    "header": lambda name, key: f"{name}: {key}",
    "header of a scheme": lambda name, key: f"{name}: Bearer {key}",
    "wide colon": lambda name, key: f"{name}：{key}，下一句",
    "JSON": lambda name, key: json.dumps({name: key, "model": "m"}, ensure_ascii=False),
    "JSON in JSON": lambda name, key: json.dumps(json.dumps({name: key}, ensure_ascii=False), ensure_ascii=False),
    "JSON in JSON in JSON": lambda name, key: json.dumps(
        json.dumps(json.dumps({name: key}, ensure_ascii=False), ensure_ascii=False), ensure_ascii=False
    ),
    "repr": lambda name, key: repr({"error": 1, name: key}),
    "repr of bytes": lambda name, key: f"{{b'{name}': b'{key}'}}",
    "repr of pairs": lambda name, key: repr([("accept", "*/*"), (name, key)]),
    "item": lambda name, key: f"settings['{name}'] = '{key}'",
    "YAML": lambda name, key: f"a:\n  {name}: '{key}'\n  b: 1",
    "YAML block": lambda name, key: f"{name}: |\n  {key}\n",
    "arrow": lambda name, key: f":{name} => {key}",
    "keyword argument": lambda name, key: f"Client(base='x', {name}={key!r}, timeout=3)",
    "query": lambda name, key: f"GET https://x.example/v1?a=1&{name}={key}&limit=3 failed",
    "connection string": lambda name, key: f"Server=x;{name}={key};Database=y",
    "list": lambda name, key: f'"{name}": ["{key}"]',
}
secrets = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789+/_.-", min_size=6, max_size=60).map(
    lambda text: f"{text}7"
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS)
def test_I7_a_key_is_hidden_behind_any_name_in_any_writing(writing: Writing, name: str) -> None:
    shown = without_keys(writing(name, KEY))
    assert KEY not in shown
    assert HIDDEN in shown
    assert without_keys(shown) == shown


@given(
    st.sampled_from(NAMES), st.sampled_from(list(WRITINGS.values())), secrets, st.sampled_from(["", "my_", "x.", "A-"])
)
def test_I7_no_line_of_the_log_holds_what_stands_behind_the_name_of_a_key(
    name: str, writing: Writing, secret: str, before: str
) -> None:
    shown = loggable(writing(before + name, secret))
    assert secret not in shown
    assert secret[:-2] not in shown


@pytest.mark.parametrize(
    "text",
    [
        'Authorization: Digest username="ann", realm="a b", response="{key}", opaque="x"',
        "Authorization: AWS4-HMAC-SHA256 Credential=AK/20270101, SignedHeaders=host, Signature={key}",
        'authorization: Token token="{key}"',
        "Authorization: Negotiate {key}==",
        "Authorization: {key}",
        "Cookie: theme=dark; sid={key}; lang=en",
        "Set-Cookie: sid={key}; Path=/; HttpOnly",
        "--api-key {key} --verbose",
        "mysql --password={key}",
        "curl -u ann:{key} https://x.example",
        "CREATE USER ann IDENTIFIED BY '{key}'",
        "<password>{key}</password>",
        '<add key="x" apiKey="{key}"/>',
        "Incorrect API key provided: {key}. You can find yours at https://x.example",
        "the password is {key}",
        "密码是{key}。",
        "api_key%3D{key}%26limit%3D3",
        "%7B%22api_key%22%3A%22{key}%22%7D",
        "{{&quot;token&quot;: &quot;{key}&quot;}}",
        '"password": "pa\\"ss {key}"',
        "'password': 'correct horse {key}'",
        "password=p@ss&{key}",
        "password=p,a;s's{key}",
        "postgres://ann:p/a@s{key}@db.example/x",
        "redis://:{key}@cache:6379",
        "https://{key}@git.example/x.git",
        "https://hooks.slack.com/services/T0/B0/{key}",
        "https://discord.com/api/webhooks/123456789/{key}",
        "https://open.feishu.cn/open-apis/bot/v2/hook/{key}",
        "https://api.telegram.org/bot123456789:{key}{key}{key}{key}/getFile",
        "https://x.blob.example/c?sv=2024&sig={key}%3D",
        "GET /v1/models?key={key}",
        "token_type=password={key}",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A\n\n{key}\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\\n{key}\\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n{key}",
        "npm_{key}{key}{key} and ya29.{key}{key}{key}",
    ],
)
def test_I7_a_key_is_hidden_in_headers_addresses_and_commands(text: str) -> None:
    assert KEY not in without_keys(text.format(key=KEY))


@pytest.mark.parametrize(
    "text",
    [
        "the token count is 5, max_tokens=4096, prompt_tokens: 7, token_limit=5, tokenCount: 5",
        "tokenizer: gpt2, pad_token=[PAD], eos_token: </s>",
        "keyboard: on, monkey: yes, author: Ann, secretary: Bob, compass: north, passed: 5, bypass=true",
        "key: value not found",
        "KeyError: 'name'",
        "primary key=42, sort_key: name",
        "Invalid API key",
        "Basic authentication required, the bearer token is invalid",
        "password: incorrect, token: not valid, Authorization: required, API key: missing",
        "the password is wrong",
        "tool reset_password: its schema was changed",
        "tool get_token: unknown_tool",
        "authorization failed: 401",
        "密码错误，密码：错误",
        "http://localhost:8080/v1/models?limit=3#a:b",
        "https://example.org:8080/@ann",
        "password_length: 8, token_url=https://x.example/token, api_key_header: X-Key",
    ],
)
def test_I7_ordinary_sentences_stay_as_they_are(text: str) -> None:
    assert without_keys(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        "token=",
        "token",
        "token_",
        "token_a",
        "api_key",
        "password: ",
        'password:"',
        'password:"\\',
        'token:\\"',
        "Cookie: a=",
        "Authorization: a b=",
        'authorization: a="',
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY----- -",
        "://",
        "://a:b",
        "--password",
        "secret[",
        "key=1",
        "%22token%22%3A%22",
        "token is ",
        "bearer ",
    ],
)
def test_I7_hiding_reads_a_text_a_bounded_number_of_times(unit: str) -> None:
    # A quadratic pattern would not come back from a text this long within minutes.
    without_keys(unit * (100_000 // len(unit)))


# What a line of the log may hold, whatever a Host or a provider says (docs/security.md).

LONG_KEY = "q8Zr2Lw9Tn4Xc7Vb1Md6Hs3J"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: sk-{LONG_KEY}",
        f"sk-proj-{LONG_KEY}_{LONG_KEY}",
        f"Authorization: Bearer {LONG_KEY}",
        f"{{'authorization': 'Basic {LONG_KEY}='}}",
        f'{{"api_key": "{LONG_KEY}", "model": "m"}}',
        f"x-api-key={LONG_KEY}",
        f"https://user:{LONG_KEY}@proxy.example:8080/v1",
        f"GET /v1?access_token={LONG_KEY}&limit=3",
        f"client_secret : {LONG_KEY}",
        f"password={LONG_KEY}",
        f"ghp_{LONG_KEY} and xoxb-{LONG_KEY}",
        f"AIza{LONG_KEY}{LONG_KEY}",
        f"123456789:{LONG_KEY}{LONG_KEY}",
        f"eyJhbGciOiJIUzI1NiJ9.{LONG_KEY}.{LONG_KEY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{LONG_KEY}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_key_is_hidden_wherever_a_client_may_put_it(text: str) -> None:
    shown = loggable(text)
    assert LONG_KEY not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    [
        "model m1: rate_limit: Model request failed: Rate limit exceeded or insufficient balance",
        "the newest message alone needs 300 tokens and the input budget leaves it 200: raise `context-window-tokens`.",
        "run: answered in 1.2 s: 3 model turns, 2 tool calls in 1 round (0 failed), 5 tokens in and 1 out",
        "model request failed: Invalid API key",
        "knowledge base 3f2b8c1e-7d55-4a56-9c55-0d8f1f4a7a11 was skipped: retrieve: timeout: no answer in time",
        "见 https://example.org:8080/a?b=c，第 3 行 👩‍👩‍👧",
    ],
)
def test_a_line_without_a_key_stays_as_it_is(text: str) -> None:
    assert loggable(text) == text


def test_a_line_cannot_pass_for_two() -> None:
    shown = loggable("gone\r\nrun: answered\u2028run: again\x85run: once more\x0brun: end")
    assert [line for line in shown.splitlines() if line.startswith("run:")] == []
    assert shown.count("run:") == 4


@given(st.text())
def test_a_line_has_no_character_that_is_not_seen(text: str) -> None:
    shown = loggable(text)
    assert {unicodedata.category(character) for character in shown if character not in "\n\t\u200c\u200d"} & {
        "Cc",
        "Cf",
        "Cs",
        "Co",
    } == set()
    assert loggable(shown).replace(" ", "") == shown.replace(" ", "")


@pytest.mark.parametrize(
    "unit", ["sk-", "eyJ", "eyJ-", "://a:", "token=", "bearer ", "123456789:", "AIza-", "-----BEGIN "]
)
def test_a_line_is_read_a_bounded_number_of_times(unit: str) -> None:
    # A quadratic pattern would not come back from a text this long within minutes.
    assert loggable(unit * (200_000 // len(unit)))

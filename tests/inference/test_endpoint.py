"""Where a model may be, and who gets which key."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from verilog_taskapp.errors import InferenceHostRefused, InferenceKeyMissing, InvalidRequest
from verilog_taskapp.inference.endpoint import (
    DEFAULT_URL,
    Endpoint,
    check_host,
    endpoint_for,
    key_for,
    normalize_url,
    proxy_endpoint,
)
from verilog_taskapp.settings import Settings

GROQ_KEY = "gsk_groqgroqgroq1234"
OPENAI_KEY = "sk-proj-openaiopenai5678"
LAB_KEY = "lab-secret-token-9999"


@pytest.fixture(autouse=True)
def _no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROQ_API_KEY", "OPENAI_API_KEY", "VERILOG_INFERENCE_URL", "VERILOG_INFERENCE_HOSTS"):
        monkeypatch.delenv(name, raising=False)


def settings_with(**values: Any) -> Settings:
    return Settings(**{"groq_api_key": GROQ_KEY, "openai_api_key": OPENAI_KEY, **values})


class TestUrl:
    @pytest.mark.parametrize(
        ("given_url", "expected"),
        [
            ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/chat/completions", "http://h/chat/completions"),
            ("http://h/v1/chat/completions/", "http://h/v1/chat/completions"),
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
            ("http://h/chat", "http://h/chat/completions"),
            ("http://h/api/chat/", "http://h/api/chat/completions"),
            ("http://h", "http://h/v1/chat/completions"),
            ("http://h/", "http://h/v1/chat/completions"),
            ("http://h/openai", "http://h/openai/v1/chat/completions"),
            ("http://h/v10", "http://h/v10/v1/chat/completions"),
            ("http://h/v1?a=1&b=%2F", "http://h/v1/chat/completions?a=1&b=%2F"),
            ("http://h?cid=x#trace/v1", "http://h/v1/chat/completions?cid=x#trace/v1"),
            ("http://h/v1/chat/completions?next=/v1/", "http://h/v1/chat/completions?next=/v1/"),
            ("HTTP://Model.Example:8000/V", "http://model.example:8000/V/v1/chat/completions"),
            ("http://[::1]:8000/v1", "http://[::1]:8000/v1/chat/completions"),
            ("  http://h/v1\n", "http://h/v1/chat/completions"),
            ("", DEFAULT_URL),
            ("   ", DEFAULT_URL),
            (None, DEFAULT_URL),
        ],
    )
    def test_a_url_becomes_the_chat_completions_url(self, given_url: object, expected: str) -> None:
        assert normalize_url(given_url) == expected

    @given(
        st.from_regex(r"https?://[a-z]{1,9}(:[1-9][0-9]{0,3})?(/[a-z0-9]{0,5}){0,4}(\?[a-z=&/]{1,9})?", fullmatch=True)
    )
    def test_normalising_twice_changes_nothing_more(self, url: str) -> None:
        assert normalize_url(normalize_url(url)) == normalize_url(url)

    @pytest.mark.parametrize(
        "bad",
        [
            "api.groq.com/v1",
            "ftp://h/v1",
            "file:///etc/passwd",
            "unix:///run/model.sock",
            "http://",
            "http:///v1",
            "http://h:0/v1",
            "http://h:99999/v1",
            "http://h:port/v1",
            "http://user@h/v1",
            "http://user:hunter2@h/v1",
            "https://api.groq.com@evil.com/v1",
            "https://api.groq.com\\@evil.com/v1",
            "http://h /v1",
            "http://h/v1\r\nX-Other: 1",
            "http://h\t.evil/v1",
            "http://%61pi.groq.com/v1",
            "http://\uff41pi.groq.com/v1",
            "http://[::1%25eth0]/v1",
            "http://[::1/v1",
            "http://0251.0376.0251.0376/v1",
            "http://h/" + "a" * 9000,
            17,
            True,
            ["http://h"],
        ],
    )
    def test_anything_else_is_refused_by_the_name_of_its_field(self, bad: object) -> None:
        with pytest.raises(InvalidRequest) as caught:
            normalize_url(bad, field="policy.config.inference_url")
        assert caught.value.status == 422
        assert caught.value.message.startswith("policy.config.inference_url ")
        assert caught.value.extras["errors"][0]["field"] == "policy.config.inference_url"
        assert "hunter2" not in repr(caught.value) + str(caught.value.extras)

    @pytest.mark.parametrize(
        ("bad", "why"),
        [
            ("http://user:hunter2@h/v1", "must not hold a user name or password"),
            ("ftp://h/v1", "must start with http"),
            ("http://h :80/v1", "a space"),
            ("http://h:99999/v1", "valid host and port"),
            (17, "must be a string, not int"),
        ],
    )
    def test_a_refusal_says_what_is_wrong(self, bad: object, why: str) -> None:
        with pytest.raises(InvalidRequest, match=f"inference_url .*{why}"):
            normalize_url(bad)

    def test_an_empty_value_means_the_servers_own_endpoint(self) -> None:
        settings = settings_with(inference_url="http://vllm.lab:8000/v1", inference_key_envs=())
        assert endpoint_for("", settings) == Endpoint("http://vllm.lab:8000/v1/chat/completions", None)


class TestHostPolicy:
    @pytest.mark.parametrize(
        "host",
        [
            "169.254.169.254",
            "169.254.0.1",
            "169.254.169.254:8080",
            "2852039166",
            "0xa9fea9fe",
            "0xA9.0xFE.0xA9.0xFE",
            "169.254.43518",
            "[fe80::1]",
            "[febf::1]",
            "[fd00:ec2::254]",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
            "[::169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[64:ff9b:1::a9fe:a9fe]",
            "100.100.100.200",
            "[::ffff:100.100.100.200]",
            "metadata.google.internal",
            "Metadata.Google.Internal.",
        ],
    )
    @pytest.mark.parametrize("listed", [(), ("*",), ("169.254.169.254", "metadata.google.internal")])
    def test_metadata_addresses_are_refused_in_every_spelling_and_whatever_is_listed(
        self, host: str, listed: tuple[str, ...]
    ) -> None:
        with pytest.raises(InferenceHostRefused, match="never contacts"):
            check_host(f"http://{host}/latest/meta-data", settings_with(inference_hosts=listed))

    @pytest.mark.parametrize(
        "host",
        [
            "api.groq.com",
            "localhost:8000",
            "127.0.0.1",
            "[::1]:8000",
            "10.0.0.5",
            "192.168.1.2",
            "169.253.255.255",
            "[fd00::1]",
        ],
    )
    def test_any_other_host_may_be_contacted_by_default(self, host: str) -> None:
        check_host(f"http://{host}/v1", settings_with())

    @pytest.mark.parametrize(
        ("host", "listed", "allowed"),
        [
            ("vllm.lab", "vllm.lab", True),
            ("VLLM.lab.", "vllm.LAB", True),
            ("vllm.lab:8001", "vllm.lab", True),
            ("evil-vllm.lab", "vllm.lab", False),
            ("vllm.lab.evil.com", "vllm.lab", False),
            ("a.lab", "*.lab", True),
            ("b.a.lab", "*.lab", True),
            ("lab", "*.lab", False),
            ("xlab", "*.lab", False),
            ("[::1]", "::1", True),
            ("127.0.0.1", "127.0.0.1", True),
            ("2130706433", "127.0.0.1", False),
            ("127.0.0.1", "vllm.lab", False),
        ],
    )
    def test_the_list_is_exact_or_a_wildcard_for_subdomains(self, host: str, listed: str, allowed: bool) -> None:
        settings = settings_with(inference_hosts=(listed,))
        if allowed:
            check_host(f"http://{host}/v1", settings)
        else:
            with pytest.raises(InferenceHostRefused, match="VERILOG_INFERENCE_HOSTS"):
                check_host(f"http://{host}/v1", settings)

    def test_the_operators_own_endpoint_needs_no_entry_but_its_neighbouring_ports_do(self) -> None:
        settings = settings_with(inference_hosts=("vllm.lab",), inference_url="http://localhost:8000/v1")
        check_host("http://localhost:8000/v1/chat/completions", settings)
        with pytest.raises(InferenceHostRefused):
            check_host("http://localhost:6379/v1/chat/completions", settings)


class TestKeys:
    def test_a_vendors_host_gets_the_vendors_key(self) -> None:
        groq = key_for("https://api.groq.com/openai/v1/chat/completions", settings_with())
        openai = key_for("https://API.openai.com:443/v1/chat/completions", settings_with())
        assert groq == SecretStr(GROQ_KEY)
        assert openai == SecretStr(OPENAI_KEY)

    @pytest.mark.parametrize(
        "url",
        [
            "https://api.groq.com.evil.com/v1",
            "https://evil.com/api.groq.com/v1",
            "https://evil.com/?host=api.groq.com",
            "https://evil.com/#api.openai.com",
            "https://xapi.groq.com/v1",
            "https://sub.api.groq.com/v1",
            "https://groq.com/v1",
            "https://api-openai.com/v1",
            "http://localhost:8000/v1",
        ],
    )
    def test_a_host_that_only_looks_like_a_vendors_gets_none(self, url: str) -> None:
        assert key_for(url, settings_with()) is None

    @pytest.mark.parametrize(
        "url",
        ["https://api.groq.com@evil.com/v1", "https://user:api.groq.com@evil.com/", "https://evil.com\\@api.groq.com"],
    )
    def test_user_names_in_a_url_are_refused_before_any_key_is_chosen(self, url: str) -> None:
        with pytest.raises(InvalidRequest):
            key_for(url, settings_with())

    def test_a_vendors_key_never_travels_in_the_clear(self) -> None:
        with pytest.raises(InvalidRequest, match="https"):
            key_for("http://api.openai.com/v1/chat/completions", settings_with())

    @pytest.mark.parametrize(
        ("url", "variable"),
        [("https://api.groq.com/openai/v1", "GROQ_API_KEY"), ("https://api.openai.com/v1", "OPENAI_API_KEY")],
    )
    @pytest.mark.parametrize("absent", [None, SecretStr(""), SecretStr("  ")])
    def test_a_missing_vendor_key_is_named(self, url: str, variable: str, absent: SecretStr | None) -> None:
        with pytest.raises(InferenceKeyMissing, match=variable) as caught:
            key_for(url, settings_with(groq_api_key=absent, openai_api_key=absent))
        assert caught.value.extras == {"variable": variable}

    def test_a_listed_variable_gives_its_key_to_another_host(self) -> None:
        settings = settings_with(inference_key_envs=("LAB_KEY",), named_keys={"LAB_KEY": f" {LAB_KEY}\n"})
        assert key_for("http://vllm.lab/v1", settings, "LAB_KEY") == SecretStr(LAB_KEY)
        assert key_for("http://vllm.lab/v1", settings) is None
        assert key_for("https://api.groq.com/openai/v1", settings, "LAB_KEY") == SecretStr(GROQ_KEY)

    def test_a_listed_variable_that_is_not_set_is_named(self) -> None:
        with pytest.raises(InferenceKeyMissing, match="LAB_KEY is not set on the server"):
            key_for("http://vllm.lab/v1", settings_with(inference_key_envs=("LAB_KEY",)), "LAB_KEY")

    def test_a_variable_that_is_not_listed_is_refused_with_the_way_to_allow_it(self) -> None:
        settings = settings_with(proxy_api_key_env="PROXY_KEY", named_keys={"PROXY_KEY": LAB_KEY})
        with pytest.raises(InferenceKeyMissing, match="VERILOG_INFERENCE_KEY_ENVS"):
            key_for("http://vllm.lab/v1", settings, "PROXY_KEY")

    def test_a_vendors_variable_is_for_the_vendor_even_if_listed(self) -> None:
        settings = settings_with(inference_key_envs=("OPENAI_API_KEY",), named_keys={"OPENAI_API_KEY": OPENAI_KEY})
        with pytest.raises(InferenceKeyMissing, match="its vendor's own host only"):
            key_for("https://evil.com/v1", settings, "OPENAI_API_KEY")

    @pytest.mark.parametrize("value", ["two words", "line\nbreak", "schlüssel"])
    def test_a_key_that_no_header_can_hold_is_said_so_without_showing_it(self, value: str) -> None:
        with pytest.raises(InferenceKeyMissing, match="GROQ_API_KEY holds characters") as caught:
            key_for("https://api.groq.com/openai/v1", settings_with(groq_api_key=value))
        assert value not in str(caught.value)
        with pytest.raises(ValueError, match="HTTP header") as direct:
            Endpoint("http://h/v1", SecretStr(value))
        assert value not in str(direct.value)

    def test_an_endpoint_does_not_print_its_key(self) -> None:
        target = endpoint_for("https://api.groq.com/openai/v1?cid=1", settings_with())
        assert target.url == "https://api.groq.com/openai/v1/chat/completions?cid=1"
        assert target.label == "api.groq.com"
        assert target.key == SecretStr(GROQ_KEY)
        assert GROQ_KEY not in repr(target)


class TestProxyUpstreams:
    def test_the_defaults_are_the_vendors_with_their_keys(self) -> None:
        settings = settings_with()
        assert proxy_endpoint(settings, "openai", "models") == Endpoint(
            "https://api.openai.com/v1/models", SecretStr(OPENAI_KEY)
        )
        assert proxy_endpoint(settings, "groq", "chat/completions") == Endpoint(
            "https://api.groq.com/openai/v1/chat/completions", SecretStr(GROQ_KEY)
        )

    def test_another_upstream_gets_only_the_variable_named_for_it(self) -> None:
        settings = settings_with(
            proxy_openai_url="http://vllm.lab:8000/v1/",
            proxy_groq_url="http://other.lab/v1",
            proxy_api_key_env="PROXY_KEY",
            named_keys={"PROXY_KEY": LAB_KEY},
            inference_hosts=("elsewhere.lab",),
        )
        assert proxy_endpoint(settings, "openai", "chat/completions") == Endpoint(
            "http://vllm.lab:8000/v1/chat/completions", SecretStr(LAB_KEY)
        )
        assert proxy_endpoint(settings, "groq", "chat/completions").key is None

    def test_a_wrong_setting_and_a_missing_key_are_named(self) -> None:
        with pytest.raises(InvalidRequest, match="VERILOG_PROXY_GROQ_URL"):
            proxy_endpoint(settings_with(proxy_groq_url="localhost:8000"), "groq", "models")
        with pytest.raises(InferenceKeyMissing, match="PROXY_KEY"):
            proxy_endpoint(
                settings_with(proxy_openai_url="http://vllm.lab/v1", proxy_api_key_env="PROXY_KEY"), "openai", "models"
            )

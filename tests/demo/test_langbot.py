from __future__ import annotations

from pathlib import Path

from demo import langbot
from demo.ports import Ports


def test_no_setting_of_another_LangBot_and_no_key_of_the_model_reaches_the_children() -> None:
    inherited = {
        "API__PORT": "1",
        "MODEL_API_KEY": "secret",
        "LANGBOT_BOX_CONTROL_TOKEN": "x",
        "PYTHONPATH": "/elsewhere",
        "MAKEFLAGS": "-j",
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "HOME": "/home/ada",
    }
    env = langbot.base_environment("token", inherited)
    assert set(env) & set(inherited) == {"PIP_INDEX_URL", "HOME"}
    assert "secret" not in env.values()
    assert env["NO_PROXY"] == "127.0.0.1,localhost"


def test_the_host_listens_on_loopback_and_calls_nobody() -> None:
    settings = langbot.host_settings(Ports(web=1, control=2, debug=3, model=4), "jwt")
    assert (settings["API__HOST"], settings["API__PORT"]) == ("127.0.0.1", "1")
    assert settings["SPACE__DISABLE_TELEMETRY"] == settings["SPACE__DISABLE_MODELS_SERVICE"] == "true"


def test_the_host_keeps_its_data_in_the_folder_of_the_bring_up_and_makes_none_in_the_repository() -> None:
    folder = Path("/somewhere/run-1")
    env = langbot.with_data_folder({"HOME": "/home/ada", "LANGBOT_DATA_ROOT": "/elsewhere"}, folder)
    assert env == {"HOME": "/home/ada", "LANGBOT_DATA_ROOT": "/somewhere/run-1/data"}

"""What may say how an app is run, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.host.config import Config, Hook, Incoming, Node, Person, Retention, Smtp, find, settle
from onefold.host.settings import Key
from onefold.terms.errors import LoadRefused

WHOLE = """
app = "refund.py"
store = "data"
durability = "lossy-on-power-cut"
listen = "127.0.0.1:9000"
public_url = "https://tools.example.com/"
node = { capacity = 500 }
retention = { runs = "forever", replies = "30 days", reflex_runs = "365 days", intake = "90 days" }
secret_env = ["NEW_SECRET", "OLD_SECRET"]
smtp = { url_env = "SMTP_URL", from = "onefold@example.com" }
alerts = ["shop_manager"]
people.shop_manager = { notify = ["mailto:manager@example.com"] }
hooks.refund_order = { secret_env = "REFUND_HOOK" }
signals.stripe = { scheme = "stripe", secret_env = ["STRIPE_NEW", "STRIPE_HOOK"], principal = "studio_42" }
keys = [{ principal = "studio_42", secret_env = "AGENT_KEY", may = ["call", "read"] }]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "onefold.toml"
    file.write_text(text)
    return file


def refused(**layers: Any) -> list[str]:
    with pytest.raises(LoadRefused) as caught:
        settle(**layers)
    return [str(finding) for finding in caught.value.findings]


def settled_or_refused(**layers: Any) -> Config | LoadRefused:
    try:
        return settle(**layers)
    except LoadRefused as refusal:
        return refusal


def test_every_setting_of_the_file_arrives_typed(tmp_path: Path) -> None:
    config = settle(file=written(tmp_path, WHOLE))
    assert config.app == "refund.py"
    assert config.folder == tmp_path / "data"
    assert config.durability == "lossy-on-power-cut"
    assert config.listen == ("127.0.0.1", 9000)
    assert config.public_url == "https://tools.example.com"
    assert config.node.capacity == 500
    assert config.secret_env == ("NEW_SECRET", "OLD_SECRET")
    assert config.smtp == Smtp("SMTP_URL", "onefold@example.com")
    assert config.people == {"shop_manager": Person(("mailto:manager@example.com",))}
    assert config.alerts == ("shop_manager",)
    assert config.hooks == {"refund_order": Hook("REFUND_HOOK")}
    assert config.signals == {"stripe": Incoming("stripe", ("STRIPE_NEW", "STRIPE_HOOK"), "studio_42")}
    assert config.retention == Retention(None, 30 * 86_400_000, None, 365 * 86_400_000, 90 * 86_400_000)
    assert config.keys == (Key("AGENT_KEY", frozenset({"call", "read"}), "studio_42"),)


def test_nothing_said_is_the_default() -> None:
    assert settle() == Config()
    assert Config().loopback


def test_the_order_is_code_flags_environment_file_default(tmp_path: Path) -> None:
    said: dict[str, Any] = {"file": written(tmp_path, 'listen = "127.0.0.1:4"')}
    assert settle(**said).listen[1] == 4
    said["environ"] = {"ONEFOLD_LISTEN": "127.0.0.1:3"}
    assert settle(**said).listen[1] == 3
    assert settle(code={"listen": "127.0.0.1:1"}, **said).listen[1] == 1
    said["flags"] = {"listen": "127.0.0.1:2"}
    assert settle(**said).listen[1] == 2


def test_a_flag_that_contradicts_the_code_is_refused() -> None:
    assert "flag store: the code says otherwise" in refused(code={"store": "a"}, flags={"store": "b"})[0]
    assert settle(code={"store": "a"}, flags={"store": "a"}).store == "a"
    assert settle(code={"store": None}, flags={"store": "b"}).store == "b"


def test_one_person_in_the_environment_does_not_hide_those_of_the_file(tmp_path: Path) -> None:
    config = settle(
        file=written(tmp_path, 'people.anna = { notify = ["mailto:anna@example.com"] }'),
        environ={"ONEFOLD_PEOPLE__BEN__NOTIFY": '["mailto:ben@example.com"]'},
    )
    assert set(config.people) == {"anna", "ben"}


@pytest.mark.parametrize(
    "variable, text, name, value",
    [
        ("ONEFOLD_PEOPLE", '{ anna = { notify = ["mailto:a@b.c"] } }', "people", {"anna": Person(("mailto:a@b.c",))}),
        ("ONEFOLD_PEOPLE__ANNA", '{ notify = ["mailto:a@b.c"] }', "people", {"anna": Person(("mailto:a@b.c",))}),
        ("ONEFOLD_HOOKS", '{ pay = { secret_env = "K" } }', "hooks", {"pay": Hook("K")}),
        ("ONEFOLD_RETENTION", '{ runs = "1 day" }', "retention", Retention(runs=86_400_000)),
        ("ONEFOLD_NODE", '{ name = "b", capacity = 7 }', "node", Node(7, "b")),
        ("ONEFOLD_SMTP", '{ url_env = "S", from = "a@b.c" }', "smtp", Smtp("S", "a@b.c")),
    ],
)
def test_a_table_may_stand_in_one_variable(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(settle(environ={variable: text}), name) == value


def test_a_slip_within_a_table_in_a_variable_is_told() -> None:
    assert "did you mean 'retention.runs'?" in refused(environ={"ONEFOLD_RETENTION": '{ run = "1 day" }'})[0]
    both = {"ONEFOLD_RETENTION": '{ runs = "1 day", ids = "2 days" }', "ONEFOLD_RETENTION__RUNS": "3 days"}
    assert settle(environ=both).retention == Retention(runs=3 * 86_400_000, ids=2 * 86_400_000)


def test_one_file_is_for_the_nodes_of_a_fleet_and_for_the_commands_beside_them(tmp_path: Path) -> None:
    text = 'slots = 64\nnode = { lease = "5 seconds" }'
    file = written(tmp_path, text)
    assert settle(file=file).node.name is None
    node = settle(file=file, flags={"node": "a"})
    assert (node.slots, node.node.lease) == (64, 5_000)


@pytest.mark.parametrize(
    "layers, told",
    [
        ({"flags": {"listn": "x:1"}}, "did you mean 'listen'?"),
        ({"flags": {"listen": "127.0.0.1"}}, 'must be "host:port"'),
        ({"flags": {"listen": "127.0.0.1:70000"}}, 'must be "host:port"'),
        ({"flags": {"durability": "some"}}, "lossy-on-power-cut"),
        ({"flags": {"store": "postgres:db"}}, "postgres://user@host/database"),
        ({"flags": {"store": "mysql://db/shop"}}, 'a folder, "postgres://…" or "memory:"'),
        ({"flags": {"store": "sqlite:///shop.db"}}, 'a folder, "postgres://…" or "memory:"'),
        ({"flags": {"spaces.refund": "mysql://db/shop"}}, 'a folder, "postgres://…" or "memory:"'),
        ({"flags": {"node.capacity": 0}}, "above 0"),
        ({"flags": {"slots": 64}}, "give this process a `node.name`"),
        ({"flags": {"node": "a b"}}, "like a host's name"),
        ({"flags": {"node": {"name": "a", "lease": "10 ms"}}}, 'from "1 second" to "10 minutes"'),
        ({"flags": {"node": "a", "slots": 100_000}}, "at most 65536"),
        ({"flags": {"retention.runs": "3 dyas"}}, 'or say "forever"'),
        ({"flags": {"retention.ids": "0s"}}, "must be longer than nothing"),
        ({"flags": {"signals.shop.secret_env": "K"}}, "does not say 'scheme'"),
        ({"flags": {"signals.shop": {"scheme": "strip", "secret_env": "K"}}}, "one of standard, stripe, github, slack"),
        ({"flags": {"signals.shop": {"scheme": "slack", "secret_env": ["A", "B", "C"]}}}, "one variable, or two"),
        ({"flags": {"people.anna.notify": ["anna"]}}, "no mailto:, https: or http: address"),
        ({"flags": {"people.anna.tell": ["mailto:a@example.com"]}}, "there is no such setting"),
        ({"flags": {"people.anna": "mailto:a@example.com"}}, "must be a table with some of: notify"),
        ({"flags": {"people": "anna"}}, "must be a table with names of yours, each a table with some of: notify"),
        ({"flags": {"hooks.refund": "REFUND_HOOK"}}, "must be a table with some of: principal, scheme, secret_env"),
        ({"flags": {"retention": "30 days"}}, "must be a table with some of: ids, intake"),
        ({"flags": {"people.anna.notify": ["anna@example.com"]}}, "write mailto:anna@example.com"),
        ({"flags": {"alerts": ["nobody"]}}, "neither one of [people] nor an address"),
        ({"flags": {"smtp.from": "a@example.com"}}, "does not say 'url_env'"),
        ({"flags": {"hooks.refund.principal": "x"}}, "does not say 'secret_env'"),
        ({"flags": {"keys": [{"secret_env": "K", "may": ["approve"]}]}}, "`may` lists some of call"),
        ({"flags": {"keys": [{"secret_env": "K", "may": ["call"], "princpal": "x"}]}}, "did you mean 'principal'?"),
        ({"flags": {"keys": [{"key": "k", "may": ["call"]}]}}, "it has principal, secret_env, may"),
        ({"flags": {"secret_env": ["A", "B", "C"]}}, "one variable, or two"),
        ({"flags": {"public_url": "tools.example.com"}}, "must be an address"),
        ({"environ": {"ONEFOLD_STOER": "x"}}, "did you mean ONEFOLD_STORE?"),
        ({"environ": {"ONEFOLD_NODE__CAPACTY": "5"}}, "did you mean ONEFOLD_NODE__CAPACITY?"),
    ],
)
def test_what_is_unknown_or_wrong_is_refused_and_says_what_is_meant(layers: dict[str, Any], told: str) -> None:
    assert told in " ".join(refused(**layers))


def test_all_findings_come_at_once_each_with_its_place(tmp_path: Path) -> None:
    found = refused(file=written(tmp_path, 'listn = "a:1"\nslots = 0'), flags={"durability": "none"})
    assert [finding.partition(": there")[0].partition(": must")[0].partition(": this")[0] for finding in found] == [
        "flag: durability",
        "onefold.toml: listn",
        "onefold.toml: slots",
    ]


def test_variables_that_merely_begin_alike_are_left_alone() -> None:
    cluster = {"ONEFOLD_PORT": "tcp://10.0.0.1:80", "ONEFOLD_SERVICE_HOST": "10.0.0.1", "ONEFOLD_KEY": "k"}
    assert settle(environ=cluster) == Config(environ=cluster)


def test_a_variable_that_a_setting_names_is_no_misspelt_setting() -> None:
    assert settle(flags={"secret_env": "ONEFOLD_SECRETS"}, environ={"ONEFOLD_SECRETS": "x" * 32}).secret_env


def test_a_broken_file_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 1" in refused(file=written(tmp_path, "listen = 5 5\n"))[0]


def test_a_relative_store_counts_from_the_file_that_names_it(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    assert settle(file=file).folder == tmp_path / "onefold-data"
    assert settle(file=file, flags={"store": "here"}).folder == Path("here")
    assert settle(flags={"store": "memory:"}).folder is None


def test_the_file_of_the_working_folder_counts_before_the_one_beside_the_target(tmp_path: Path) -> None:
    beside = tmp_path / "examples"
    beside.mkdir()
    written(beside, "")
    assert find(beside / "refund.py", start=tmp_path) == beside / "onefold.toml"
    assert find(None, start=tmp_path) is None
    written(tmp_path, "")
    assert find(beside / "refund.py", start=tmp_path) == tmp_path / "onefold.toml"


@pytest.mark.parametrize(
    "listen, alone",
    [("127.0.0.1:1", True), ("127.8.8.8:1", True), ("[::1]:1", True), ("localhost:1", True), ("0.0.0.0:1", False)],
)
def test_only_addresses_of_this_machine_are_loopback(listen: str, alone: bool) -> None:
    assert settle(flags={"listen": listen}).loopback is alone


def test_a_secret_is_read_when_asked_for_and_shown_nowhere() -> None:
    environ = {"ONEFOLD_SECRET": "s3cret-" * 5}
    config = settle(environ=environ)
    assert config.secret_env == ("ONEFOLD_SECRET",)
    assert "s3cret" not in repr(config)
    environ["ONEFOLD_SECRET"] = "changed-" * 5
    assert config.secret("ONEFOLD_SECRET", "secret_env") == "changed-" * 5


DO = "set it to 16 bytes or more, or name another there"


def test_a_secret_that_is_missing_or_short_is_refused_by_name_alone() -> None:
    config = settle(flags={"secret_env": ["A", "B"]}, environ={"B": "hunter2"})
    assert [str(finding) for finding in config.lacking()] == [
        f"A: this variable holds the secret of secret_env and is not set; {DO}",
        f"B: this variable holds the secret of secret_env and is shorter than 16 bytes; {DO}",
    ]
    for name in ("A", "B"):
        with pytest.raises(LoadRefused, match=f"{name}: this variable holds the secret of hooks.a") as caught:
            config.secret(name, "hooks.a")
        assert "hunter2" not in str(caught.value)


def test_a_secret_that_is_missing_names_the_setting_that_asked_for_it() -> None:
    flags = {
        "keys": [{"secret_env": "K", "may": ["call"]}, {"secret_env": "L", "may": ["call"]}],
        "hooks": {"refund_order": {"secret_env": "H"}},
        "signals": {"stripe": {"scheme": "stripe", "secret_env": ["S", "T"]}},
        "smtp": {"url_env": "M", "from": "onefold@example.com"},
    }
    told = {finding.where: finding.problem for finding in settle(flags=flags, environ={}).lacking()}
    asked = {where: problem.removeprefix("this variable holds the secret of ") for where, problem in told.items()}
    assert {where: problem.partition(" and is not set")[0] for where, problem in asked.items()} == {
        "K": "key 1 of `keys`",
        "L": "key 2 of `keys`",
        "H": "hooks.refund_order",
        "S": "signals.stripe",
        "T": "signals.stripe",
        "M": "smtp.url_env",
    }


@given(st.dictionaries(st.text(max_size=12), st.one_of(st.none(), st.text(max_size=8), st.integers(), st.booleans())))
def test_whatever_is_said_is_taken_whole_or_refused_in_words(flags: dict[str, Any]) -> None:
    assert isinstance(settled_or_refused(flags=flags), Config | LoadRefused)


@given(st.dictionaries(st.from_regex(r"ONEFOLD_[A-Z_]{0,20}", fullmatch=True), st.text(max_size=20), max_size=4))
def test_no_environment_breaks_a_start_otherwise_than_in_words(environ: dict[str, str]) -> None:
    assert isinstance(settled_or_refused(environ=environ), Config | LoadRefused)

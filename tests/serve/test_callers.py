"""Keys: who may call, and what a caller may use."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful import Controller, MemorySource, UsageError, new_entry
from heedful.serve.callers import Caller, CallerKey, Callers, Rights, key_hash, new_key
from heedful.serve.served_policies import ServedPolicy
from tests.faulty import FaultyServer, answers
from tests.making import FixedBank
from tests.serve.serving import Client, make_service, serving
from tests.serve.test_chat_route import KNOWN, unsure


def keyed(**rights: Any) -> Callers:
    return Callers([CallerKey(hash=key_hash("k"), caller=Caller(name="ann", rights=Rights(**rights)))])


def two_policies(controller: Controller) -> list[ServedPolicy]:
    note = new_entry("The shop opens at 9 am.", kind="fact", id="shop", scope={"user": "ann"})
    own = replace(controller, sources={"memory": MemorySource(bank=FixedBank([note]))})
    return [
        ServedPolicy(name="default", controller=controller, banks=("fixed",)),
        ServedPolicy(name="support", controller=own, banks=("shop",)),
    ]


def asked(client: Client, model: str = "m", **headers: str) -> Any:
    return client.ask(model=model, headers={"Authorization": "Bearer k", **headers})


def test_keys_are_random_and_long() -> None:
    assert new_key() != new_key()
    assert len(new_key()) > 40


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/feedback", "/v1/admin/reload"])
def test_a_request_without_a_known_key_is_refused(header: dict[str, str], path: str, tmp_path: Path) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=keyed())) as client,
    ):
        assert client.post(path, {}, **header).status == 401
        assert client.send("GET", "/healthz").status == 200
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("callers", "policy", "decision"),
    [
        (keyed(), "there is no policy 'x' that this key may use", "this key has no such decision"),
        (Callers(), "there is no policy 'x'; GET /v1/models names them", "there is no such decision"),
    ],
)
def test_a_refusal_speaks_of_a_key_only_where_there_are_keys(
    callers: Callers, policy: str, decision: str, tmp_path: Path
) -> None:
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=callers)) as client,
    ):
        foreign = asked(client, "m+heedful/x")
        unknown = client.send("GET", "/v1/decisions/000000000000", Authorization="Bearer k")
    assert (foreign.status, unknown.status) == (404, 404)
    assert foreign.json["error"]["message"].startswith(policy)
    assert unknown.json["error"]["message"].startswith(decision)


def test_the_callers_key_never_reaches_the_upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "upstream-key")
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=keyed())) as client,
    ):
        asked(client)
        client.ask(n=2, headers={"Authorization": "Bearer k"})
    assert {request.headers["Authorization"] for request in upstream.requests} == {"Bearer upstream-key"}


def test_a_policy_is_chosen_by_suffix_or_header_within_the_keys_rights(tmp_path: Path) -> None:
    callers = keyed(policies=("support",))
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=callers, served=two_policies)) as client,
    ):
        suffix = asked(client, "gpt-x+heedful/support")
        header = asked(client, "gpt-x", **{"x-heedful-policy": "support"})
        foreign, unknown = asked(client), asked(client, "gpt-x+heedful/other")
    assert (suffix.status, header.status, foreign.status, unknown.status) == (200, 200, 404, 404)
    assert {request.body["model"] for request in upstream.requests} == {"gpt-x"}


def test_a_bank_is_chosen_by_header_within_the_keys_rights(tmp_path: Path) -> None:
    def banks(controller: Controller) -> list[ServedPolicy]:
        return [replace(policy, name="default") for policy in two_policies(controller)]

    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=keyed(banks=("shop",)), served=banks)) as client,
    ):
        shop, desk = (asked(client, **{"x-heedful-bank": bank}) for bank in ("shop", "fixed"))
    assert (shop.status, desk.status) == (200, 404)


def test_a_scope_reaches_its_own_memory_only(tmp_path: Path) -> None:
    callers = keyed(scopes=("user=ann", "team=*"))
    note = new_entry("The desk opens at 7 am.", kind="fact", scope={"user": "ann"})
    with (
        FaultyServer(unsure) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=callers, entries=(note,))) as client,
    ):
        own = asked(client, **{"x-heedful-scope": "user=ann, team=x"})
        nobody = asked(client)
        foreign = asked(client, **{"x-heedful-scope": "user=bob"})
        forged = asked(client, **{"x-heedful-scope": "caller=bob"})
        broken = asked(client, **{"x-heedful-scope": "user"})
        twice = asked(client, **{"x-heedful-scope": "team=x, team=y"})
    assert (own.text, own.headers["x-heedful-verdict"]) == (KNOWN, "accept")
    assert nobody.headers["x-heedful-verdict"] == "rollback"
    assert (foreign.status, forged.status, broken.status, twice.status) == (403, 400, 400, 400)


def test_only_an_admin_reloads(tmp_path: Path) -> None:
    for admin, status in ((False, 403), (True, 200)):
        with (
            FaultyServer(lambda _: answers("x")) as upstream,
            serving(make_service(upstream.url, tmp_path / str(admin), callers=keyed(admin=admin))) as client,
        ):
            assert client.post("/v1/admin/reload", {}, Authorization="Bearer k").status == status


def test_without_keys_foreign_web_pages_and_foreign_names_are_refused(tmp_path: Path) -> None:
    with FaultyServer(unsure) as upstream, serving(make_service(upstream.url, tmp_path)) as client:
        page = client.ask(headers={"Origin": "https://evil.example"})
        rebound = client.ask(headers={"Host": "evil.example"})
        own = client.ask(headers={"Origin": "http://localhost:3000"})
    assert (page.status, rebound.status, own.status) == (403, 403, 200)


def test_a_reload_reads_the_keys_again_and_a_revoked_key_is_unknown(tmp_path: Path) -> None:
    ann, root = (
        CallerKey(hash=key_hash(key), caller=Caller(name=name, rights=Rights(admin=admin)))
        for key, name, admin in (("k", "ann", False), ("r", "root", True))
    )
    versions = [[root], None]

    def read() -> list[CallerKey]:
        keys = versions.pop(0)
        if keys is None:
            raise UsageError("keys.toml is not TOML")
        return keys

    callers = Callers([ann, root], read)
    with (
        FaultyServer(lambda _: answers("x")) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=callers)) as client,
    ):
        before = asked(client).status
        reloads = [
            client.post("/v1/admin/reload", {}, Authorization=f"{scheme} r").status
            for scheme in ("bearer", "Bearer")
        ]
        after = asked(client).status
    assert (before, reloads, after) == (200, [200, 400], 401)


@pytest.mark.parametrize(
    ("scopes", "header", "user"),
    [(("user=*",), "", "bob"), (("user=*",), "user=ann", "ann"), (("user=ann",), "", None), ((), "", None)],
)
def test_the_field_user_is_a_scope_within_the_rights_of_the_key(
    scopes: tuple[str, ...], header: str, user: str | None, tmp_path: Path
) -> None:
    with (
        FaultyServer(lambda _: answers("x")) as upstream,
        serving(make_service(upstream.url, tmp_path, callers=keyed(scopes=scopes))) as client,
    ):
        key = {"Authorization": "Bearer k"}
        answer = client.ask(user="bob", headers={**key, **({"x-heedful-scope": header} if header else {})})
        id = answer.headers["x-heedful-decision"]
        decision = client.send("GET", f"/v1/decisions/{id}", None, **key).json
    assert decision["task"]["scope"].get("user") == user

"""The files under deploy/: they parse, refer to each other, and run commands that exist."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from heedful.cli.main import app

DEPLOY = Path(__file__).parent.parent / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
API_VERSIONS = {
    "Namespace": "v1",
    "Secret": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "PodDisruptionBudget": "policy/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}


def manifests() -> list[dict[str, Any]]:
    return [part for file in MANIFESTS for part in yaml.safe_load_all(file.read_text())]


def of(kind: str) -> list[dict[str, Any]]:
    return [part for part in manifests() if part["kind"] == kind]


def workloads() -> list[dict[str, Any]]:
    return [*of("Deployment"), *of("StatefulSet"), *of("Job")]


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every container with the pod that it is in."""
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield pod, container


def refuse_unknown_options(words: Sequence[str]) -> None:
    """Fail unless heedful has this command with these options."""
    command: Any = typer.main.get_command(app)
    names = list(words)
    while hasattr(command, "commands"):
        command = command.commands[names.pop(0)]
    command.make_context("heedful", names)


def heedful_commands() -> tuple[list[list[str]], list[list[str]]]:
    """What heedful's containers run: the services of the compose file, and the pods."""
    services = [one["command"] for one in compose()["services"].values() if "heedful" in one.get("image", "")]
    pods = [one["args"] for _, one in containers() if one["image"].startswith("heedful:")]
    return services, pods


def test_every_heedful_command_exists_with_its_options() -> None:
    services, pods = heedful_commands()
    assert (len(services), len(pods)) == (3, 2)
    for words in (*services, *pods):
        refuse_unknown_options(words)


def test_an_option_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        refuse_unknown_options(["serve", "--no-such-option"])


def test_two_servers_of_one_store_stand_behind_the_balancer() -> None:
    services = compose()["services"]
    behind = re.findall(
        r"(\S+):8080", re.findall(r"reverse_proxy (.*) {", (DEPLOY / "Caddyfile").read_text())[0]
    )
    assert len(behind) == 2
    stores = {services[name]["environment"]["HEEDFUL_STORE"] for name in behind}
    assert len(stores) == 1
    assert "@postgres:5432/heedful" in stores.pop()
    assert services["balancer"]["ports"] == ["127.0.0.1:8080:8080"]


def test_services_depend_on_services_volumes_and_secrets_that_exist() -> None:
    read = compose()
    for service in read["services"].values():
        assert set(service.get("depends_on", ())) <= set(read["services"])
        assert set(service.get("secrets", ())) <= set(read["secrets"])
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in read["volumes"] or (DEPLOY / source).exists()


def test_every_variable_of_the_compose_file_is_in_the_example() -> None:
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert used == set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))


def test_the_servers_start_with_a_new_store_which_has_no_bank() -> None:
    services, pods = heedful_commands()
    servers = [words for words in (*services, *pods) if words[0] == "serve"]
    assert len(servers) == 3
    assert not any({"--bank", "--policy"} & set(words) for words in servers)


@pytest.mark.parametrize("part", manifests(), ids=lambda part: f"{part['kind']} {part['metadata']['name']}")
def test_a_manifest_has_the_current_api_and_the_namespace(part: dict[str, Any]) -> None:
    assert part["apiVersion"] == API_VERSIONS[part["kind"]]
    assert part["kind"] == "Namespace" or part["metadata"]["namespace"] == "heedful"


def test_selectors_choose_pods_and_ports_that_exist() -> None:
    pods = [workload["spec"]["template"] for workload in workloads()]
    labels = [pod["metadata"]["labels"] for pod in pods]
    for workload in (*of("Deployment"), *of("StatefulSet")):
        assert (
            workload["spec"]["selector"]["matchLabels"] == workload["spec"]["template"]["metadata"]["labels"]
        )
    for service in of("Service"):
        [pod] = [pod for pod in pods if service["spec"]["selector"] == pod["metadata"]["labels"]]
        named = {port["name"] for one in pod["spec"]["containers"] for port in one["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named
    for budget in of("PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"] in labels
    for policy in of("NetworkPolicy"):
        assert policy["spec"]["podSelector"]["matchLabels"] in labels


def test_every_secret_that_is_used_is_in_the_example() -> None:
    known = {secret["metadata"]["name"]: set(secret["stringData"]) for secret in of("Secret")}
    for pod, container in containers():
        for variable in container.get("env", ()):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            assert reference is None or reference["key"] in known[reference["name"]]
        for volume in pod.get("volumes", ()):
            for item in volume.get("secret", {}).get("items", ()):
                assert item["key"] in known[volume["secret"]["secretName"]]


def test_every_mount_has_its_volume() -> None:
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        claims = [claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", ())]
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | set(claims)
        for container in pod["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes


def test_containers_are_pinned_bounded_and_unprivileged() -> None:
    for pod, container in containers():
        assert re.fullmatch(r"[\w/.-]+:\d[\w.-]*", container["image"]), container["image"]
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    for service in compose()["services"].values():
        assert re.fullmatch(r"[\w/.-]+:\d[\w.-]*", service["image"])


def test_a_server_without_its_store_stays_behind_the_service() -> None:
    [server] = of("Deployment")
    [container] = server["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert "health_uri /healthz" in (DEPLOY / "Caddyfile").read_text()


def test_no_file_contains_a_password() -> None:
    for file in (*MANIFESTS, DEPLOY / "compose.yaml", DEPLOY / "roles.sql"):
        for secret in re.findall(r"postgresql://\w+:([^@\n]*)@", file.read_text()):
            assert secret == "CHANGE" or secret.startswith("${")


def test_secrets_reach_neither_the_repository_nor_the_image() -> None:
    for name in ("deploy/.env", "deploy/keys.toml"):
        assert name in (DEPLOY.parent / ".dockerignore").read_text().splitlines()
        assert f"/{name}" in (DEPLOY.parent / ".gitignore").read_text().splitlines()

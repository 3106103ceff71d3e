#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/kubernetes: the plain manifests and the Helm chart, checked against Kubernetes' own schemas and against each other; the configuration in
them, by the program. Helm is the one that is installed, else a small program around its engine (helm_go). What cannot be had is skipped. Speaks TAP.

Usage: kubernetes.py [PATH-TO-HIKYAKU] (default: $HIKYAKU); ONLY="words" runs the tests whose names hold one of them."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source folder stays as it is
import clients
from support import BINARY, Skip, clean_environment, run_tests

KUBERNETES = pathlib.Path(__file__).resolve().parents[2] / "packaging/kubernetes"
PLAIN, MONITOR, CHART = KUBERNETES / "hikyaku.yaml", KUBERNETES / "servicemonitor.yaml", KUBERNETES / "chart"
VERSIONS = ("1.28", "1.31", "1.34")
VALIDATE = ("kubernetes-validate==1.37.0", "jsonschema==4.25.1", "PyYAML==6.0.3", "packaging==25.0", "typing_extensions==4.15.0", "referencing==0.36.2")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def python():
    def make(folder):
        return (clients.step("there is no venv", sys.executable, "-m", "venv", str(folder))
                or clients.step("pip cannot fetch kubernetes-validate", str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-compile",
                                "--only-binary", ":all:", "--disable-pip-version-check", *VALIDATE))
    return clients.folder_of("kubernetes", " ".join([*VALIDATE, sys.version]).encode(), make) / "bin/python"


def helm(values):
    """What Helm makes of the chart with these values: (exit code, YAML or what it complained of)."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(values, file)
        file.flush()
        installed = shutil.which("helm")
        command = [installed, "template", "hikyaku", CHART, "--kube-version", "1.31.0", "-f", file.name] if installed else [renderer(), CHART, file.name]
        done = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False, env=clean_environment())
        return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def renderer():
    compiler = shutil.which("go")
    if not compiler:
        raise Skip("neither helm nor go is installed")
    source = pathlib.Path(__file__).resolve().parent / "helm_go"
    files = [source / name for name in ("go.mod", "go.sum", "main.go")]

    def make(folder):
        for file in files:
            shutil.copy(file, folder)
        return clients.step("go cannot build Helm's engine", compiler, "build", "-p", "2", "-o", "render", ".", cwd=folder,
                            env={"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"})
    return clients.folder_of("helm-go", b"".join(file.read_bytes() for file in files), make) / "render"


CHECK = """
import json, sys, yaml, kubernetes_validate
documents = [d for d in yaml.safe_load_all(sys.stdin) if d]
for d in documents:
    for version in sys.argv[1:]:
        if d["apiVersion"].startswith("monitoring.coreos.com/"):
            continue
        kubernetes_validate.validate(d, version, strict=True)
print(json.dumps(documents))
"""


def read(text, *versions):
    """The documents; each fits the schemas of these versions."""
    done = subprocess.run([python(), "-c", CHECK, *versions], input=text, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def one(documents, kind):
    found = [d for d in documents if d["kind"] == kind]
    assert len(found) == 1, (kind, [d["kind"] for d in documents])
    return found[0]


def check_pod(template, secrets):
    pod = template["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, pod
    container, = pod["containers"]
    inside = container["securityContext"]
    assert inside == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, inside
    assert "memory" in container["resources"]["limits"]
    assert all(e.get("valueFrom", {}).get("secretKeyRef", {}).get("name") in secrets or "://" not in e.get("value", "") for e in container.get("env", []))
    said = subprocess.run([BINARY, "help", container["args"][0]], text=True, capture_output=True, check=False, timeout=60)
    assert said.returncode == 0 and all(f"{a} " in said.stdout for a in container["args"] if a.startswith("--")), container["args"]
    return container


def check_config(config, folder):
    """As a relay in that pod reads it."""
    path = pathlib.Path(folder) / "hikyaku.yaml"
    path.write_text(config, encoding="utf-8")
    given = {**clean_environment(), "DATABASE_URL": "postgres://relay@db/shop", "BILLING_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    done = subprocess.run([BINARY, "config", "check", str(path)], text=True, capture_output=True, check=False, timeout=60, env=given)
    assert done.returncode == 0, done.stdout + done.stderr


def check_all(documents):
    deployment, config = one(documents, "Deployment"), one(documents, "ConfigMap")
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    for selector in (deployment["spec"]["selector"]["matchLabels"], one(documents, "Service")["spec"]["selector"],
                     one(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                     one(documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]):
        assert selector.items() <= labels, (selector, labels)
    init = [d for d in documents if d["kind"] == "Job"]
    for job in init:  # it is no relay: neither the Service nor the policy may take it for one
        assert not deployment["spec"]["selector"]["matchLabels"].items() <= job["spec"]["template"]["metadata"]["labels"].items()
        assert check_pod(job["spec"]["template"], {"hikyaku-owner"})["args"] == ["init"]
    pod = deployment["spec"]["template"]["spec"]
    relay = check_pod(deployment["spec"]["template"], set())
    assert pod["terminationGracePeriodSeconds"] >= 25, "a drain takes 20 s"
    port, = relay["ports"]
    assert f":{port['containerPort']}" in config["data"]["hikyaku.yaml"], "the probes ask a port where nobody listens"
    assert (relay["livenessProbe"]["httpGet"], relay["readinessProbe"]["httpGet"]) == (
        {"path": "/livez", "port": port["name"]}, {"path": "/readyz", "port": port["name"]})
    service, = one(documents, "Service")["spec"]["ports"]
    assert (service["port"], service["targetPort"]) == (port["containerPort"], port["name"])
    ingress, = one(documents, "NetworkPolicy")["spec"]["ingress"]
    assert [p["port"] for p in ingress["ports"]] == [port["name"]]
    assert one(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    mounts, volumes = {m["name"] for m in relay["volumeMounts"]}, {v["name"]: v for v in pod["volumes"]}
    assert mounts == set(volumes) and volumes["config"]["configMap"]["name"] == config["metadata"]["name"], (mounts, volumes)
    assert pod["serviceAccountName"] == one(documents, "ServiceAccount")["metadata"]["name"]
    with tempfile.TemporaryDirectory() as folder:
        check_config(config["data"]["hikyaku.yaml"], folder)


@test
def the_plain_manifests_fit_the_schemas_and_each_other():
    check_all(read(PLAIN.read_text(encoding="utf-8"), *VERSIONS))
    monitor, = read(MONITOR.read_text(encoding="utf-8"))
    service = one(read(PLAIN.read_text(encoding="utf-8")), "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), monitor
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"], monitor


@test
def the_schemas_find_a_mistake():
    wrong = PLAIN.read_text(encoding="utf-8").replace("maxUnavailable: 1\n", "maxUnavailible: 1\n")
    assert wrong != PLAIN.read_text(encoding="utf-8")
    try:
        read(wrong, VERSIONS[-1])
    except AssertionError as error:
        assert "maxUnavailible" in str(error), error
        return
    raise AssertionError("a misspelt field was accepted")


def bare(documents):
    """Without what belongs to Helm."""
    for d in documents:
        if any("helm.sh/" in name for name in d["metadata"].get("annotations", {})):
            del d["metadata"]["annotations"]
        if d["kind"] == "Deployment":
            del d["spec"]["template"]["metadata"]["annotations"]
    return sorted(documents, key=lambda d: d["kind"])


@test
def the_chart_renders_the_plain_manifests():
    code, text = helm({"serviceMonitor": {"enabled": True}})
    assert code == 0, text
    rendered = read(text, *VERSIONS)
    check_all(rendered)
    plain = read(PLAIN.read_text(encoding="utf-8")) + read(MONITOR.read_text(encoding="utf-8"))
    for ours in plain:
        ours["spec"] = ours.get("spec", {})
        if ours["kind"] == "Deployment":
            ours["spec"]["template"]["metadata"].setdefault("annotations", {})
    for theirs in rendered:
        theirs["spec"] = theirs.get("spec", {})
    assert bare(rendered) == bare(plain), "packaging/kubernetes/hikyaku.yaml is not what the chart renders"


@test
def every_value_of_the_chart_does_something_and_wrong_ones_are_refused():
    digest = "sha256:" + "a1" * 32
    code, text = helm({
        "image": {"repository": "registry.example/hikyaku", "digest": digest}, "imagePullSecrets": [{"name": "pull"}], "replicas": 5,
        "config": {"admin": {"health_listen": "0.0.0.0:9000"}}, "secret": {"name": "own", "create": {"DATABASE_URL": "postgres://x"}, "files": "keys"},
        "terminationGracePeriodSeconds": 60, "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}], "database": {"cidr": "10.0.0.5/32", "port": 6432},
                          "destinations": [{"cidr": "203.0.113.0/24", "ports": [443, 8443]}]},
        "podAnnotations": {"a": "b"}, "podLabels": {"team": "shop"}, "nodeSelector": {"disk": "ssd"}, "priorityClassName": "high",
        "tolerations": [{"key": "t", "operator": "Exists"}], "affinity": {"nodeAffinity": {}}})
    assert code == 0, text
    documents = read(text, *VERSIONS)
    check_all(documents)
    deployment = one(documents, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    relay = pod["containers"][0]
    assert (deployment["spec"]["replicas"], relay["image"], pod["terminationGracePeriodSeconds"]) == (5, f"registry.example/hikyaku@{digest}", 60)
    assert relay["envFrom"] == [{"secretRef": {"name": "own"}}] and one(documents, "Secret")["stringData"] == {"DATABASE_URL": "postgres://x"}
    assert relay["volumeMounts"][1]["mountPath"] == "/run/secrets/hikyaku" and pod["volumes"][1]["secret"]["secretName"] == "keys"
    assert (pod["nodeSelector"], pod["priorityClassName"], pod["imagePullSecrets"]) == ({"disk": "ssd"}, "high", [{"name": "pull"}])
    assert deployment["spec"]["template"]["metadata"]["labels"]["team"] == "shop" and deployment["spec"]["template"]["metadata"]["annotations"]["a"] == "b"
    egress = one(documents, "NetworkPolicy")["spec"]["egress"]
    assert [p["port"] for p in egress[1]["ports"]] == [6432] and [p["port"] for p in egress[2]["ports"]] == [443, 8443], egress
    assert one(documents, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"
    off = {"init": {"enabled": False}, "podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}}
    assert {d["kind"] for d in read(helm(off)[1], VERSIONS[0])} == {"ServiceAccount", "ConfigMap", "Service", "Deployment"}
    for wrong, words in (({"terminationGracePeriodSeconds": 5}, "terminationGracePeriodSeconds"), ({"replica": 3}, "replica"),
                         ({"image": {"repository": "x", "digest": "latest"}}, "digest"), ({"config": {"admin": {"health_listen": None}}}, "health_listen")):
        code, text = helm(wrong)
        assert code != 0 and words in text, (wrong, code, text)


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))

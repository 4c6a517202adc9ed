"""Between client, scheduler and workers: a network that is slow and stalls, and TLS as Dask has it."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import pytest
import trustme
from support.adapters import discovered, results_of
from support.clusters import DIGIT, PLUS, Cluster, Network, ScriptedTree, once_each
from support.slow_network import slow_network
from support.socket_servers import certificate_files

from msp_bridge.adapter import BridgeError, Status

NO_CERTIFICATE = {"distributed.comm.tls.client.cert": None, "distributed.comm.tls.client.key": None}
STATUSES = {"plus": Status.SURVIVED, "digit": Status.KILLED}


async def test_a_slow_network_that_stalls_where_packets_are_lost_changes_no_result(
    tree: ScriptedTree, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.cluster.adapter.sends_openly", lambda _: True)  # as to another machine
    tree.script(PLUS, DIGIT)
    tree.files(6, "x = y + 1\nz = a + b + 1\n")
    with slow_network() as slow:
        network = Network(reached=slow.reached)
        async with Cluster.running(tmp_path / "cluster", network=network) as cluster, tree.adapter(cluster) as adapter:
            for _ in range(2):
                mutants = await discovered(adapter)
                before = slow.carried
                results = await results_of(adapter, mutants)
                assert slow.carried > before
                assert once_each(results, mutants)
                assert {(one.mutant.mutator, one.status) for one in results} == {*STATUSES.items()}
            findings = [finding async for finding in adapter.diagnose()]
            assert [finding.good for finding in findings if finding.subject == "worker"] == [True, True]
    assert slow.lost > 0
    assert caplog.text.count("go to the workers of tcp://") == 1, "it is said once"


class Certificates:
    """Files of an authority and of one certificate of it, which client, scheduler and workers have in common."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        authority, self._ca = trustme.CA(), directory / "ca.pem"
        authority.cert_pem.write_to_path(self._ca)
        self._certificate, self._key = certificate_files(authority, directory)

    def of(self, *roles: str) -> dict[str, str]:
        """Dask's configuration with TLS for these roles, as keys with dots."""
        found = {"ca-file": str(self._ca)}
        for role in roles:
            found |= {f"{role}.cert": str(self._certificate), f"{role}.key": str(self._key)}
        return {"distributed.comm.require-encryption": "True"} | {
            f"distributed.comm.tls.{key}": value for key, value in found.items()
        }

    def network(self) -> Network:
        """Of scheduler and workers, which are configured by their environment."""
        variables = {
            f"DASK_{key.replace('.', '__').replace('-', '_').upper()}": value
            for key, value in self.of("scheduler", "worker").items()
        }
        return Network("tls", variables)


@pytest.fixture
def certificates(tmp_path: Path) -> Iterator[Certificates]:
    """This process has the certificate of a client."""
    made = Certificates(tmp_path / "certificates")
    import_module("distributed.config")  # before, since the end of `set` would take the defaults with it
    with dask.config.set(made.of("client")):
        yield made


async def test_a_cluster_with_tls_tests_and_refuses_whoever_has_no_certificate_of_it(
    tree: ScriptedTree, tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.script(PLUS, DIGIT)
    tree.files(3, "x = y + 1\n")
    others = Certificates(tmp_path / "others")
    async with Cluster.running(tmp_path / "cluster", 1, network=certificates.network()) as cluster:
        async with tree.adapter(cluster) as adapter:
            mutants = await discovered(adapter)
            results = await results_of(adapter, mutants)
            assert once_each(results, mutants)
            assert {(one.mutant.mutator, one.status) for one in results} == {*STATUSES.items()}
        monkeypatch.setattr("msp_bridge.cluster.connection.CONNECT_S", 3)
        for configured in (others.of("client"), certificates.of() | NO_CERTIFICATE):
            assert "certificate" in await refused(tree, cluster, configured)
        cluster.address = cluster.address.replace("tls://", "tcp://")
        assert "encryption required" in await refused(tree, cluster, {})
        assert "can't be reached" in await refused(tree, cluster, {"distributed.comm.require-encryption": False})


async def refused(tree: ScriptedTree, cluster: Cluster, configured: Mapping[str, Any]) -> str:
    """What a client with this configuration of Dask gets as an error."""
    with dask.config.set(configured):
        async with tree.adapter(cluster) as adapter:
            with pytest.raises(BridgeError) as raised:
                await results_of(adapter, await discovered(adapter))
    assert "\n" not in str(raised.value)
    return str(raised.value)

"""StrykerJS in namespaces: its tests see the project at its own path, and nothing of them reaches the machine."""

import logging
import os
import shutil
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_js import launch as launching
from support.adapters import discovered, findings_of, results_of
from support.stryker_js_trees import CORE9, adapter_on, copied

from msp_bridge.adapter import Result, Status

ALL = "isolated per run: the tree at its own path, the network, temporary files, processes, queues"


def project(directory: Path, spec: str) -> Path:
    """A project whose tests begin with `spec`. It does not lie among temporary files, as those of users don't."""
    root = copied("js_mocha", directory)
    (root / "test/a.spec.js").write_text(f"import fs from 'node:fs';\nimport os from 'node:os';\n{spec}\n")
    return root


async def some_results(adapter: StrykerJs, count: int = 2) -> list[Result]:
    """Of mutants that the tests kill."""
    mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("sum + discount", "{}")]
    return await results_of(adapter, mutants[:count])


async def isolation_of(adapter: StrykerJs) -> str:
    """What doctor says of it."""
    [finding] = [finding for finding in await findings_of(adapter) if finding.subject == "isolation"]
    return finding.text


@pytest.mark.usefixtures("permitted")
async def test_tests_write_where_they_like_change_nothing_of_the_machine_and_name_the_files_of_the_project(
    isolated: bool, lasting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Path("/tmp", f"msp-bridge-test-{os.getpid()}")
    root = project(
        lasting,
        f"""
        import {{ total }} from '../lib/price.js';
        const own = {str(lasting / "project")!r};
        it('names where it is', () => {{ if (total([50, 60]) !== 110) throw new Error('in ' + process.cwd() + '/lib'); }});
        it('runs where the project is', () => {{
          const there = process.cwd().startsWith(own + '/.stryker-tmp/');
          if (there !== {str(isolated).lower()}) throw new Error('in ' + process.cwd());
          if (there) for (const place of [own, own + '/node_modules', '/tmp'])
            fs.writeFileSync(place + '/{shared.name}', '');
          fs.mkdtempSync(os.tmpdir() + '/{shared.name}-');
        }});
        """,
    )
    installed = root / ".venv/lib/target"  # the bridge may be installed in the project
    shutil.copytree(launching.PROGRAMS, installed)
    monkeypatch.setattr(launching, "PROGRAMS", installed)
    before = (root / "lib/price.js").read_text()
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter, "lib/price.js"))
        assert await isolation_of(adapter) == (ALL if isolated else "isolated per run: a copy of the tree, TMPDIR")
    reasons = {result.status_reason for result in results if "names where it is" in (result.killed_by or ())}
    assert reasons == {f"in {root}/lib"}
    assert before == (root / "lib/price.js").read_text()
    assert list(shared.parent.glob(f"{shared.name}*")) == []
    assert list(CORE9.glob(shared.name)) == []


@pytest.mark.usefixtures("permitted")
async def test_tests_that_need_the_network_of_the_machine_keep_it(
    lasting: Path, service: int, caplog: pytest.LogCaptureFixture
) -> None:
    spec = f"""
    import net from 'node:net';
    it('connects', (done) => {{ net.connect({service}, '127.0.0.1', done).on('error', done).unref(); }});
    """
    root = project(lasting, spec)
    with caplog.at_level(logging.WARNING, "msp_bridge.toolkit.isolation"):
        async with adapter_on(root) as adapter:
            for _ in range(2):
                (result, *_) = await some_results(adapter)
                assert result.status is Status.KILLED
            isolated = await isolation_of(adapter)
    [record] = caplog.records
    text = "StrykerJS fails isolated and passes otherwise, so it runs without net from now on: the tests fail without"
    assert record.getMessage().startswith(text)
    assert isolated == ALL.replace("the network, ", "")

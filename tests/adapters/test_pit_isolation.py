"""What tests of Java do beside testing reaches nothing, where the machine permits namespaces: with the real PIT."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.adapters import discovered
from support.files import written
from support.java_trees import adapter_on, key, needs_pit, results_of, stock, without_maven

from msp_bridge.adapter import Status

pytestmark = needs_pit
LEAVES = """for (String place : new String[] {{ "src/left", "{root}/left", "{home}" }}) {{
            Files.writeString(Path.of(place), "left");
        }}
        new ProcessBuilder("sleep", "1000").start();"""
OUTSIDE = """Assert.assertFalse(Files.readString(Path.of("/proc/self/mountinfo")).contains(System.getProperty("user.dir")));"""
CHECKS = "Assert.assertEquals(8, Rates.twice(4)); Assert.assertTrue(Rates.made(4) > 0);"
VERDICTS = {"7 Math": Status.KILLED, "18 Math": Status.SURVIVED}


def project(root: Path, body: str) -> Path:
    return without_maven(written(root, stock(["Rates"], {"RatesTest": f"{body}\n        {CHECKS}"})))


@pytest.fixture
def of_home() -> Iterator[Path]:
    """A file that is not there, in the home directory."""
    file = Path.home() / f".msp-bridge-test-{os.getpid()}"
    yield file
    file.unlink(missing_ok=True)


async def test_what_tests_write_and_start_is_gone_with_their_jvm(
    tmp_path: Path, pit_tools: Path, of_home: Path
) -> None:
    root = tmp_path / "project"
    async with adapter_on(project(root, LEAVES.format(root=root, home=of_home)), pit_tools) as adapter:
        if "without namespaces" in (told := await adapter._modules.isolation()):
            pytest.skip(told)
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) in VERDICTS]
        results = await results_of(adapter, mutants)
        assert {name: result.status for name, result in results.items()} == VERDICTS
        async with adapter._modules._builds.current() as build:
            assert not (build.root / "src" / "left").exists()
        assert not of_home.exists()


async def test_tests_that_fail_inside_are_run_outside(
    tmp_path: Path, pit_tools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with adapter_on(project(tmp_path / "project", OUTSIDE), pit_tools) as adapter:
        before = await adapter._modules.isolation()
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) in VERDICTS]
        results = await results_of(adapter, mutants)
        assert {name: result.status for name, result in results.items()} == VERDICTS
        if "home directory" in before:
            assert "runs in a private copy, without namespaces from now on" in caplog.text

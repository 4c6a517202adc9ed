"""Runs and their failures, with a stand-in for cargo and cargo-mutants."""

import asyncio
import contextlib
import json
import os
import threading
from collections import Counter
from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants
from support.adapters import discovered, project_at, refusal, results_of
from support.files import written
from support.projects import copied
from support.rust_trees import adapter_on, stand_in

from msp_bridge.adapter import BaselineError, Finding, Status, ToolError
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in has no temporary files of its own, for it notes its calls among those."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay")
    stand_in(tmp_path, monkeypatch)
    return copied("rust_stand_in", tmp_path)


def script(root: Path, **entries: object) -> None:
    (root / "stand-in.json").write_text(json.dumps(entries))


async def test_statuses_and_details_are_those_of_the_outcomes(root: Path) -> None:
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    by_place = {(result.mutant.path, result.mutant.location.start.line): result for result in results}
    assert {place: result.status for place, result in by_place.items()} == {
        ("shop/src/lib.rs", 2): Status.KILLED,
        ("shop/src/lib.rs", 6): Status.COMPILE_ERROR,
        ("stock/src/lib.rs", 1): Status.SURVIVED,
        ("stock/src/lib.rs", 5): Status.TIMEOUT,
        ("stock/src/lib.rs", 6): Status.SURVIVED,
    }
    killed = by_place["shop/src/lib.rs", 2]
    assert (killed.killed_by, killed.status_reason, killed.duration) == (("tests::add",), "left is not right", 125)


@pytest.mark.parametrize("nameless", [False, True])
async def test_only_the_chosen_mutants_are_tested(root: Path, nameless: bool) -> None:
    script(root, **({"nameless": True} if nameless else {}))
    async with adapter_on(root) as adapter:
        chosen = (await discovered(adapter))[1::3]
        assert [result.mutant for result in await results_of(adapter, chosen)] == chosen


async def test_more_mutants_than_one_run_takes_are_tested_in_several(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.run.MAX_MUTANTS_OF_RUN", 2)
    async with adapter_on(root) as adapter:
        chosen = (await discovered(adapter))[:5]
        assert [result.mutant for result in await results_of(adapter, chosen)] == chosen


def runs_in_place(root: Path) -> dict[str, list[str]]:
    """By the name of the kept copy, how each run there came by its limit of time."""
    files = (root.parent / "cache").rglob("target/runs")
    return {file.parents[2].name: file.read_text().splitlines() for file in files}


MEASURED, KNOWN = "None None", "skip 20"


async def test_few_mutants_are_tested_in_a_kept_copy_and_its_tests_pass_without_a_mutant_once(root: Path) -> None:
    (root / "Cargo.lock").touch()
    async with adapter_on(root, jobs=4) as adapter:
        mutants = await discovered(adapter)
        for chosen in (mutants[:2], mutants[:1], mutants[-1:], mutants[-2:], mutants[:1]):
            assert [result.mutant for result in await results_of(adapter, chosen)] == chosen
        in_place = [MEASURED, KNOWN, MEASURED, KNOWN, KNOWN]
        assert runs_in_place(root) == {"build-0": in_place}, "the third is of another package"
        await asyncio.gather(results_of(adapter, mutants[:1]), results_of(adapter, mutants[:1]))
        assert set(runs_in_place(root)) == {"build-0", "build-1"}, "two runs at once have two copies"


def depend(root: Path) -> None:
    """From now on one package needs another from elsewhere."""
    with (root / "shop/Cargo.toml").open("a") as file:
        file.write('\n[target."cfg(unix)".dependencies]\nserde = "1"\n')


async def test_many_mutants_are_shared_by_copies_that_work_at_once(root: Path) -> None:
    (root.parent / "meeting").mkdir()
    script(root, meet=str(root.parent / "meeting"))
    depend(root)
    async with adapter_on(root, jobs=4) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
    assert Counter(result.mutant for result in results) == Counter(mutants)
    runs = runs_in_place(root)
    assert set(runs) == {"build-0", "build-1"}, "one for each eight"
    assert [each[:2] for each in runs.values()] == [[MEASURED, KNOWN]] * 2, "the second has what the first has built"
    assert [len(each) for each in runs.values()] == [2, 2], "a run of a mutant of each package, and a share for each"


@pytest.mark.parametrize("lock", [None, '[[package]]\nname = "shop"\n'])
async def test_without_dependencies_no_copy_waits_for_what_another_one_builds(
    root: Path, lock: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.run.MUTANTS_OF_A_COPY", 1)
    if lock is not None:
        (root / "Cargo.lock").write_text(lock)
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter, "stock/src/lib.rs")
        assert Counter(result.mutant for result in await results_of(adapter, mutants)) == Counter(mutants)
    assert sorted(runs_in_place(root).values()) == [[MEASURED], [KNOWN]]


async def test_copies_that_work_at_once_have_the_lock_file_with_which_the_tests_pass(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.run.MUTANTS_OF_A_COPY", 1)
    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.run.LEAST_OF_A_RUN", 2)
    (root.parent / "meeting").mkdir()
    script(root, meet=str(root.parent / "meeting"), locks=True)
    depend(root)
    async with adapter_on(root, jobs=2) as adapter:
        results = await results_of(adapter, await discovered(adapter, "stock/src/lib.rs"))
    assert set(runs_in_place(root)) == {"build-0", "build-1"}
    assert Status.COMPILE_ERROR not in {result.status for result in results}


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("project/README.md", [MEASURED]),
        ("project/Cargo.lock", [MEASURED]),
        ("programs/rustc", [KNOWN, MEASURED]),  # it is asked meanwhile; the first one's result is dropped
        ("cargo-home/config.toml", [MEASURED]),
        ("elsewhere", [KNOWN]),
    ],
)
async def test_a_run_without_a_mutant_is_made_again_when_what_it_depends_on_has_changed(
    root: Path, changed: str, runs: list[str]
) -> None:
    (root / "Cargo.lock").touch()
    async with adapter_on(root, edited=True, jobs=1) as adapter:
        mutants = (await discovered(adapter))[:1]
        await results_of(adapter, mutants)
        (root.parent / "cargo-home").mkdir()
        with (root.parent / changed).open("a") as file:
            file.write("# echo changed" if changed != "programs/rustc" else "echo changed\n")
        assert [result.mutant for result in await results_of(adapter, mutants)] == mutants
    assert runs_in_place(root) == {"build-0": [MEASURED, *runs]}


@pytest.mark.parametrize("file", ["cargo-home/config.toml", ".cargo/config.toml"])
async def test_no_verdict_is_reused_when_cargo_is_configured_otherwise(root: Path, file: str) -> None:
    (root / "Cargo.lock").touch()
    async with adapter_on(root) as adapter:
        before = await adapter.surroundings()
        assert before is not None
        written(root.parent, {file: '[build]\nrustflags = ["--cfg", "strict"]\n'})
        assert await adapter.surroundings() != before


@pytest.mark.parametrize(
    ("manifest", "configuration", "runs"),
    [
        ('[[package]]\nname = "elsewhere"', "", {"build-0": [MEASURED, MEASURED]}),  # of a path that nothing pins
        ("", "copy_vcs = true", {}),
    ],
)
async def test_what_no_kept_copy_can_know_is_done_as_cargo_mutants_does(
    root: Path, manifest: str, configuration: str, runs: dict[str, list[str]]
) -> None:
    (root / "Cargo.lock").write_text(manifest)
    (root / ".cargo").mkdir()
    (root / ".cargo" / "mutants.toml").write_text(configuration)
    async with adapter_on(root) as adapter:
        mutants = (await discovered(adapter))[:1]
        for _ in range(2):
            assert [result.mutant for result in await results_of(adapter, mutants)] == mutants
    assert runs_in_place(root) == runs


async def test_builds_that_grow_too_large_are_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.kept_copies.MAX_BUILD_BYTES", 1)
    async with adapter_on(root) as adapter:
        await results_of(adapter, (await discovered(adapter))[:1])
    assert runs_in_place(root) == {}


async def test_a_copy_is_kept_until_a_cancelled_run_has_deleted_its_builds(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting, may_delete, deleted = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slowly(_: object) -> None:
        loop.call_soon_threadsafe(deleting.set)
        may_delete.wait()
        deleted.set()

    monkeypatch.setattr("msp_bridge.adapters.cargo_mutants.kept_copies._limit", slowly)
    async with adapter_on(root) as adapter:
        request = asyncio.create_task(results_of(adapter, (await discovered(adapter))[:1]))
        await deleting.wait()
        request.cancel()
        loop.call_later(0.05, may_delete.set)
        await asyncio.wait([request])
        assert deleted.is_set()


async def test_tests_that_fail_only_in_a_kept_copy_are_run_in_one_of_cargo_mutants(root: Path) -> None:
    script(root, baseline="fails in place")
    async with adapter_on(root) as adapter:
        mutants = (await discovered(adapter))[:2]
        assert [result.mutant for result in await results_of(adapter, mutants)] == mutants
        assert len(await results_of(adapter, mutants)) == 2
    assert runs_in_place(root) == {"build-0": [MEASURED]}, "which is remembered"


async def test_a_mutant_that_a_cancelled_run_left_in_the_copy_is_put_back_as_a_new_file(root: Path) -> None:
    script(root, hangs=True)
    file = root / "shop" / "src" / "lib.rs"
    os.utime(file, (0, 0))
    async with adapter_on(root, edited=True, jobs=1) as adapter:
        mutants = (await discovered(adapter))[:1]
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            await anext(results)
        [copy] = (root.parent / "cache").glob("build-0/*/shop/src/lib.rs")
        left = copy.stat().st_mtime_ns
        assert copy.read_text() == file.read_text() + "// a mutant"
        (root / "stand-in.json").unlink()
        assert [result.mutant for result in await results_of(adapter, mutants)] == mutants
        assert copy.read_text() == file.read_text()
        assert copy.stat().st_mtime_ns > left, "for cargo it is newer than what was built of the mutant"


async def test_a_result_comes_before_the_run_ends_and_closing_ends_it(root: Path) -> None:
    script(root, hangs=True)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            assert (await anext(results)).mutant == mutants[0]


async def test_a_package_of_a_workspace_has_only_its_own_mutants(root: Path) -> None:
    async with adapter_on(root / "shop", cache=root.parent / "cache") as adapter:
        mutants = await discovered(adapter)
        assert {mutant.path for mutant in mutants} == {"src/lib.rs"}
        assert len(await results_of(adapter, mutants[:1])) == 1


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"missing": True}, "cargo-mutants is not installed: cargo install --locked cargo-mutants"),
        (
            {"exit": 70},
            "cargo-mutants can't work on .*: thread 'main' panicked: fix what `cargo mutants --list` prints",
        ),
    ],
    ids=str,
)
async def test_a_tool_that_fails_is_a_clear_error(root: Path, entries: dict[str, object], says: str) -> None:
    script(root, **entries)
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match=f"^{says}") as raised:
            await discovered(adapter)
        assert "backtrace" not in str(raised.value)
        assert [finding.good for finding in [finding async for finding in adapter.diagnose()]] == [True, False]


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("Welcome!\n[]", "Expecting value: line 1 column 1 (char 0)"),
        ('{"mutants": []}', "it is no list of objects"),
        ('[{"name": "a", "file": "shop/src/lib.rs"}]', "it lacks 'span'"),
    ],
)
async def test_a_list_that_can_not_be_read_is_a_clear_error(root: Path, printed: str, says: str) -> None:
    script(root, json=printed)
    problem = f"the list of mutants of cargo-mutants in {root} can't be read: {says}"
    remedy = "look at what `cargo mutants --list --json` prints"
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError) as raised:
            await discovered(adapter)
        assert (raised.value.problem, raised.value.remedy) == (problem, remedy)
        *_, last = [finding async for finding in adapter.diagnose()]
        assert last == Finding(False, "cargo-mutants", problem, remedy)


async def test_a_file_that_is_no_rust_is_named(root: Path) -> None:
    (root / "shop" / "src" / "lib.rs").write_text("fn {")
    await refusal(adapter_on(root), ToolError, r"failed to parse shop/src/lib\.rs")


async def test_tests_that_fail_without_a_mutant_are_named(root: Path) -> None:
    script(root, baseline="fails")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(
            BaselineError, match=r"^the tests fail without any mutant: tests::add: make `cargo test`"
        ) as red:
            await results_of(adapter, mutants)
        assert red.value.failing == ("tests::add",)


async def test_the_doctor_shows_the_versions_and_how_many_mutants(root: Path) -> None:
    async with adapter_on(root) as adapter:
        findings = [finding async for finding in adapter.diagnose()]
    assert findings[1:3] == [
        Finding(True, "cargo-mutants", "cargo-mutants 27.1.0"),
        Finding(True, "mutants", f"14 in {root}"),
    ]


def test_it_is_detected_in_packages_where_the_tool_is(root: Path, tmp_path: Path) -> None:
    assert CargoMutants.detect(project_at(root)) is not None
    assert CargoMutants.detect(project_at(root / "shop")) is not None
    assert CargoMutants.detect(project_at(tmp_path)) is None
    assert CargoMutants.detect(project_at(root, config_file=root / "mutants.toml")) is not None
    assert CargoMutants.detect(project_at(root, config_file=root / "cosmic-ray.toml")) is None
    assert "there is no Cargo.toml" in CargoMutants.absent(project_at(tmp_path)).text


def test_a_nested_member_is_left_to_its_workspace(root: Path, tmp_path: Path) -> None:
    assert CargoMutants.detect(project_at(root, nested=True)) is not None
    assert CargoMutants.detect(project_at(root / "shop", nested=True)) is None
    assert CargoMutants.detect(project_at(root / "shop", nested=True, opened=tmp_path)) is None
    manifest = root / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("[workspace]", '[workspace]\nexclude = ["tools"]'))
    (root / "tools" / "own").mkdir(parents=True)
    (root / "tools" / "own" / "Cargo.toml").write_text('[package]\nname = "own"\n')
    assert CargoMutants.detect(project_at(root / "tools" / "own", nested=True)) is not None
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "Cargo.toml").write_text('[package]\nname = "alone"\n')
    assert CargoMutants.detect(project_at(alone, nested=True)) is not None


async def test_members_are_found_where_the_user_opened_only_a_part_of_their_workspace(root: Path) -> None:
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    (root / "crates").mkdir()
    for name in ("shop", "stock"):
        (root / name).rename(root / "crates" / name)
    configuration = Configuration(adapters=("cargo-mutants",), jobs=1)
    async with contextlib.aclosing(Workspace.open(root / "crates", configuration)) as workspace:
        assert [tool.folder for tool in workspace.tools] == ["shop/", "stock/"]
        async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
            paths = {mutant.path async for mutant in mutants}
    assert paths == {"shop/src/lib.rs", "stock/src/lib.rs"}
    async with contextlib.aclosing(Workspace.open(root, configuration)) as workspace:
        assert [tool.folder for tool in workspace.tools] == [""]


def test_without_the_tool_only_its_configuration_makes_it_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, installed=False)
    root = copied("rust_stand_in", tmp_path)
    assert CargoMutants.detect(project_at(root)) is None
    assert CargoMutants.absent(project_at(root)).remedy == "cargo install --locked cargo-mutants"
    (root / ".cargo").mkdir()
    (root / ".cargo" / "mutants.toml").touch()
    assert CargoMutants.detect(project_at(root)) is not None


async def test_mutants_are_listed_again_only_when_a_file_has_changed(root: Path) -> None:
    log = root.parent / "calls"
    configuration = Configuration(adapters=("cargo-mutants",), jobs=1)
    async with contextlib.aclosing(Workspace.open(root, configuration)) as workspace:
        async with contextlib.aclosing(workspace.test(Selection())) as results:
            assert len([result async for result in results]) == 14
        calls = log.read_text().splitlines()
        assert [call for call in calls if "--list" in call] == ["mutants --colors never --list --json --workspace"]
        assert len(calls) == 3  # where the workspace is, the listing, the run
        log.unlink()
        async with contextlib.aclosing(workspace.test(Selection())) as results:
            assert len([result async for result in results]) == 14
        assert len(log.read_text().splitlines()) == 1
        with (root / "shop" / "Cargo.toml").open("a") as file:
            file.write("\n")
        async with contextlib.aclosing(workspace.test(Selection())) as results:
            assert len([result async for result in results]) == 14
        assert len(log.read_text().splitlines()) == 3


@pytest.fixture
def unrestricted(permitted: None, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all parts of isolation."""
    monkeypatch.delenv("MSP_BRIDGE_ISOLATION")


@pytest.mark.usefixtures("unrestricted")
@pytest.mark.parametrize(
    ("count", "configuration"),
    [(1, ""), (12, ""), (12, "copy_vcs = true")],
    ids=["in a kept copy", "in several", "in those of cargo-mutants"],
)
async def test_what_tests_write_into_the_project_by_an_absolute_path_is_dropped(
    root: Path, count: int, configuration: str
) -> None:
    script(root, spoils="spoilt")
    (root / ".cargo").mkdir()
    (root / ".cargo" / "mutants.toml").write_text(configuration)
    async with adapter_on(root) as adapter:  # which compares the tree
        mutants = (await discovered(adapter))[:count]
        assert {result.mutant for result in await results_of(adapter, mutants)} == set(mutants)
        [*_, finding] = [finding async for finding in adapter.diagnose()]
    own = "the tree at its own path, the network, temporary files, processes, queues"
    assert finding == Finding(True, "isolation", f"isolated per run: {own}")


@pytest.mark.usefixtures("unrestricted")
async def test_tests_that_fail_only_isolated_are_run_without(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    script(root, device=os.stat("/tmp").st_dev)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert len(await results_of(adapter, mutants)) == len(mutants)
    assert "cargo-mutants fails isolated and passes otherwise, so it runs without net" in caplog.text
    assert "the tests fail without any mutant: tests::add" in caplog.text

"""The real cargo-mutants on the example, where it is: every kind of mutant, kept builds, and nextest."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from support.adapters import discovered, results_of
from support.files import written
from support.projects import EXAMPLES, copied
from support.rust_trees import PROGRAMS, adapter_on, needs

from msp_bridge.adapter import Status
from msp_bridge.testing import Oracle

BY_NEXTEST = """
#[test]
fn by_nextest() {
    assert!(std::env::var("NEXTEST").is_ok());
}
"""

PACKAGE = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
PACKAGES = {
    "Cargo.toml": PACKAGE.format(name="shop")
    + '[dependencies]\nstock = { path = "stock" }\n[workspace]\nmembers = ["stock"]\n',
    "src/lib.rs": "pub fn sold() -> u32 {\n    stock::left() + 1\n}\n"
    "#[test]\nfn one_is_sold() {\n    assert_eq!(sold(), 4);\n}\n",
    "stock/Cargo.toml": PACKAGE.format(name="stock"),
    "stock/src/lib.rs": "pub fn left() -> u32 {\n    3\n}\n",
}

BUILT = {  # with three files 3 or 4 are sold, with two 2 or 3
    "src/lib.rs": "pub fn sold() -> u32 {\n    stock::left() + 1\n}\n"
    "#[test]\nfn some_are_sold() {\n    assert!(sold() > 2);\n}\n",
    "stock/src/lib.rs": 'pub fn left() -> u32 {\n    include!(concat!(env!("OUT_DIR"), "/left.rs"))\n}\n',
    "stock/build.rs": "fn main() {\n"
    '    let files = std::fs::read_dir("data").unwrap().count();\n'
    '    std::fs::write(std::env::var("OUT_DIR").unwrap() + "/left.rs", files.to_string()).unwrap();\n}\n',
    **{f"stock/data/{number}.txt": "" for number in (1, 2, 3)},
}
CONDITIONAL = {
    "Cargo.toml": PACKAGES["Cargo.toml"] + "[features]\ncounted = []\n",
    "src/lib.rs": "pub fn sold() -> u32 {\n    stock::left() + 1\n}\n"
    '#[cfg(feature = "counted")]\n#[test]\n#[cfg_attr(not(debug_assertions), ignore)]\nfn one_is_sold() {\n    assert_eq!(sold(), 4);\n}\n',
}
CONFIGURATIONS = [
    """features = ["counted"]
additional_cargo_args = ["--jobs=1"]
additional_cargo_test_args = ["--", "--include-ignored"]""",
    """all_features = true
profile = "release"
test_workspace = true
test_tool = "nextest"
additional_cargo_test_args = ["--run-ignored=all"]""",
    """no_default_features = true
all_features = true
test_package = ["shop"]""",
]
SHARED = {  # the tests of `stock` alone kill
    "src/lib.rs": '#[path = "../shared/least.rs"]\npub mod least;\npub mod names;\n',
    "src/main.rs": "mod names;\nfn main() {}\n",
    "src/names.rs": "pub fn number() -> u32 {\n    7\n}\n",
    "shared/least.rs": "pub fn least() -> u32 {\n    3\n}\n",
    "stock/src/lib.rs": '#[path = "../../shared/least.rs"]\nmod least;\n'
    "#[test]\nfn three_are_least() {\n    assert_eq!(least::least(), 3);\n}\n",
}


def price(number: int) -> str:
    return f"pub fn price() -> u32 {{\n    {number}\n}}\n"


UNSEEN = {  # each function gives one, and after a change nothing
    "Cargo.toml": PACKAGE.format(name="market") + '[dependencies]\npriced = { path = "../priced" }\ntax = "1"\n',
    ".cargo/config.toml": '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n',
    "vendor/tax/Cargo.toml": PACKAGE.format(name="tax").replace("0.1.0", "1.0.0"),
    "vendor/tax/src/lib.rs": price(1),
    "vendor/tax/.cargo-checksum.json": '{"files": {}}',
    "build.rs": "fn main() {\n"
    '    println!("cargo::rerun-if-changed=build.rs");\n'
    '    let names = std::fs::read_to_string("src/names.rs").unwrap().matches("fn ").count().to_string();\n'
    '    std::fs::write(std::env::var("OUT_DIR").unwrap() + "/names.rs", names).unwrap();\n}\n',
    "src/names.rs": "// fn one\n",
    "src/lib.rs": "pub fn listed() -> u32 {\n"
    '    include!(concat!(env!("OUT_DIR"), "/names.rs"))\n}\n'
    "pub fn paid() -> u32 {\n    priced::price()\n}\n"
    "pub fn taxed() -> u32 {\n    tax::price()\n}\n"
    "#[test]\nfn some() {\n    assert_eq!(listed(), NAMES);\n    assert_eq!(paid(), priced::price());\n"
    "    assert_eq!(taxed(), tax::price());\n}\n"
    '#[cfg(test)]\nconst NAMES: u32 = include!(concat!(env!("OUT_DIR"), "/names.rs"));\n',
}


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PROGRAMS)


@needs("cargo-mutants")
async def test_cargo_mutants_tests_mutants_of_every_kind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "msp_bridge.phases")
    root = copied(EXAMPLES / "shop-rust", tmp_path)
    wanted = {
        "replace * with + in total": Status.SURVIVED,
        "replace - with + in total": Status.KILLED,
        "replace - with + in left": Status.KILLED,
        "replace find -> Option<Item> with Some(Default::default())": Status.COMPILE_ERROR,
        "replace && with || in label": Status.SURVIVED,
    }
    async with adapter_on(root) as adapter:
        chosen = [mutant for mutant in await discovered(adapter) if mutant.description in wanted]
        results = await results_of(adapter, chosen)
        assert caplog.text.count("running the tests without mutants") == 1
        again = await results_of(adapter, chosen[:1])
    assert {result.mutant.description: result.status for result in results} == wanted
    assert [result.status for result in again] == [wanted[chosen[0].description]]
    assert caplog.text.count("running the tests without mutants") == 1, "it is known"


@needs("cargo-mutants")
async def test_fresh_processes_run_the_tests_of_the_mutated_package_as_cargo_mutants_does(tmp_path: Path) -> None:
    """Two packages, of which `shop` alone has tests, and needs the other one."""
    root = written(tmp_path / "market", PACKAGES)
    wanted = {"stock/src/lib.rs": Status.SURVIVED, "src/lib.rs": Status.KILLED}
    async with adapter_on(root, edited=True) as adapter:
        chosen = [mutant for mutant in await discovered(adapter) if mutant.replacement == "0"]
        results = await results_of(adapter, chosen)
        oracle = await Oracle.of(root, await adapter.test_command() or ())
        assert {each.mutant.path: each.status for each in results} == wanted
        assert {each.mutant.path: (await oracle.verdict_on(each)).status for each in results} == wanted


@needs("cargo-mutants")
@needs("cargo-nextest")
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
async def test_fresh_processes_run_the_tests_as_it_is_configured(tmp_path: Path, configuration: str) -> None:
    root = written(tmp_path / "market", PACKAGES | CONDITIONAL | {".cargo/mutants.toml": configuration})
    async with adapter_on(root) as adapter:
        chosen = [mutant for mutant in await discovered(adapter) if mutant.description == "replace sold -> u32 with 0"]
        results = await results_of(adapter, chosen)
        assert [result.status for result in results] == [Status.KILLED]
        oracle = await Oracle.of(root, await adapter.test_command() or ())
        assert (await oracle.verdict_on(results[0])).status is Status.KILLED


@needs("cargo-mutants")
async def test_what_is_built_with_a_mutant_never_gets_into_a_directory_that_others_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies have the project's own path. So cargo would take the build of one for that of another, or of the user."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay")  # temporary files are real
    monkeypatch.setenv("CARGO_BUILD_BUILD_DIR", str(tmp_path / "builds"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    root = written(tmp_path / "market", PACKAGES)
    async with adapter_on(root) as adapter:
        chosen = [mutant for mutant in await discovered(adapter) if mutant.description == "replace sold -> u32 with 0"]
        assert [result.status for result in await results_of(adapter, chosen)] == [Status.KILLED]
        assert not {"builds", "target"} & {path.name for path in tmp_path.iterdir()}
        oracle = await Oracle.of(root, await adapter.test_command() or (), isolated=False)
        assert (await oracle.verdict_of(chosen[0])).status is Status.KILLED
    assert not {"builds", "target"} & {path.name for path in tmp_path.iterdir()}


@needs("cargo-mutants")
async def test_a_file_that_is_a_module_of_several_packages_and_programs_has_each_mutant_once(tmp_path: Path) -> None:
    root = written(tmp_path / "market", PACKAGES | SHARED)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert len(mutants) == len(set(mutants))
        chosen = [mutant for mutant in mutants if mutant.path in ("shared/least.rs", "src/names.rs")]
        results = await results_of(adapter, chosen)
    assert len(results) == len(chosen) == len({result.mutant for result in results})
    by_path = {
        path: {each.status for each in results if each.mutant.path == path}
        for path in ("shared/least.rs", "src/names.rs")
    }
    assert by_path == {"shared/least.rs": {Status.KILLED}, "src/names.rs": {Status.SURVIVED}}


@needs("cargo-mutants")
async def test_kept_builds_are_never_those_of_another_text(tmp_path: Path) -> None:
    root = copied(EXAMPLES / "shop-rust", tmp_path)
    source = root / "shop" / "src" / "lib.rs"
    strong = source.read_text("utf-8")
    weak = strong.replace("assert_eq!(super::total(2, 3), 6);", "")
    wanted = {strong: Status.KILLED, weak: Status.SURVIVED}
    async with adapter_on(root, edited=True) as adapter:
        for text in (strong, weak, strong):
            source.write_text(text, "utf-8")
            chosen = [
                mutant for mutant in await discovered(adapter) if mutant.description == "replace - with + in total"
            ]
            assert [result.status for result in await results_of(adapter, chosen)] == [wanted[text]]
            async with contextlib.aclosing(adapter.test(chosen)) as results:
                stopped = asyncio.create_task(anext(results))  # a build of the mutant may be left half-way
                await asyncio.sleep(1)
                stopped.cancel()
                await asyncio.wait([stopped])
    programs = [file.read_bytes() for file in (tmp_path / "cache").rglob("target/debug/deps/shop-*") if not file.suffix]
    assert programs
    assert not any(b"clang LLVM (rustc" in program for program in programs), "debug information says this"


@needs("cargo-mutants")
async def test_a_build_script_of_another_package_sees_that_a_file_is_gone(tmp_path: Path) -> None:
    """Cargo by itself runs it again only where something is newer."""
    root = written(tmp_path / "market", PACKAGES | BUILT)
    async with adapter_on(root, edited=True) as adapter:
        for wanted in (Status.SURVIVED, Status.KILLED):
            chosen = [
                mutant for mutant in await discovered(adapter) if mutant.description == "replace + with * in sold"
            ]
            assert [result.status for result in await results_of(adapter, chosen)] == [wanted]
            (root / "stock/data/3.txt").unlink(missing_ok=True)


@needs("cargo-mutants")
@needs("cargo-nextest")
async def test_a_project_that_uses_nextest_is_tested_with_it(tmp_path: Path) -> None:
    root = copied(EXAMPLES / "shop-rust", tmp_path)
    (root / ".cargo").mkdir()
    (root / ".cargo" / "mutants.toml").write_text('test_tool = "nextest"\n', "utf-8")
    with (root / "shop" / "src" / "lib.rs").open("a", encoding="utf-8") as file:
        file.write(BY_NEXTEST)
    wanted = {
        "replace * with + in total": (Status.SURVIVED, None),
        "replace - with + in total": (Status.KILLED, ("tests::three_cost_thrice_as_much",)),
    }
    async with adapter_on(root) as adapter:
        chosen = [mutant for mutant in await discovered(adapter) if mutant.description in wanted]
        results = await results_of(adapter, chosen)
    assert {each.mutant.description: (each.status, each.killed_by) for each in results} == wanted
    assert [each.tests_completed for each in results if each.status is Status.SURVIVED] == [3]


@needs("cargo-mutants")
async def test_what_cargo_does_not_see_of_a_change_is_built_again(tmp_path: Path) -> None:
    """What a build script has not named, a package outside of the tree that is older than its build, a vendored one."""
    root = written(tmp_path / "market", UNSEEN)
    written(tmp_path / "priced", {"Cargo.toml": PACKAGE.format(name="priced"), "src/lib.rs": price(1)})
    async with adapter_on(root, edited=True) as adapter:

        async def statuses() -> list[Status]:
            found = {mutant.description: mutant for mutant in await discovered(adapter)}
            chosen = [found[f"replace {name} -> u32 with 0"] for name in ("listed", "paid", "taxed")]
            results = {result.mutant: result.status for result in await results_of(adapter, chosen)}
            return [results[mutant] for mutant in chosen]

        assert await statuses() == [Status.KILLED] * 3
        (root / "src/names.rs").write_text("// none\n")
        assert await statuses() == [Status.SURVIVED, Status.KILLED, Status.KILLED]
        (tmp_path / "priced/src/lib.rs").write_text(price(0))
        os.utime(tmp_path / "priced/src/lib.rs", (1_500_000_000, 1_500_000_000))
        assert await statuses() == [Status.SURVIVED, Status.SURVIVED, Status.KILLED]
        (root / "vendor/tax/src/lib.rs").write_text(price(0))
        assert await statuses() == [Status.SURVIVED, Status.SURVIVED, Status.SURVIVED]

"""Which mutants there are: odd names, broken files, edits, configurations of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.notices import remarks, unusable
from support.stryker_js_trees import CORE8, CORE9, adapter_on, configure, copied, discovered, findings_of, results_of

from msp_bridge.adapter import Status
from msp_bridge.source import SourceText

ODD = [
    "[id].js",
    "[...all].js",
    "{a,b}.js",
    "sp ace.js",
    "ünï 𝒳.js",
    "!bang.js",
    "(group)/+page.js",
    "a+(b).js",
    "#1.js",
    "c:1-2.js",
]
ADD = "exports.add = function (a, b) {\n  return a + b;\n};\n"


def with_odd_names(root: Path) -> None:
    configure(root, mutate=["odd/**/*.js"], testRunner="command", plugins=[], commandRunner={"command": "node odd.cjs"})
    (root / "package.json").write_text("{}")
    for name in ODD:
        file = root / "odd" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ADD)
    names = ", ".join(f"{'./odd/' + name!r}" for name in ODD)
    (root / "odd.cjs").write_text(
        f"for (const name of [{names}]) if (require(name).add(1, 2) !== 3) process.exit(1);\n"
    )


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
async def test_files_may_have_any_name(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    with_odd_names(root)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert {mutant.path for mutant in mutants} == {f"odd/{name}" for name in ODD}
        some = [mutant for mutant in mutants if mutant.mutator == "ArithmeticOperator"]
        assert [mutant.path for mutant in await discovered(adapter, "odd/[id].js")] == ["odd/[id].js"] * 2
        (root / "new.txt").write_text("so that nothing is known any more")
        assert await discovered(adapter, "odd/[id].js") == [m for m in mutants if m.path == "odd/[id].js"]
        results = await results_of(adapter, some)
        assert sorted(result.mutant.path for result in results) == sorted(f"odd/{name}" for name in ODD)
        assert {result.status for result in results} == {Status.KILLED}
        (root / "new.txt").unlink()


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
async def test_a_file_that_the_configuration_leaves_out_has_no_mutants(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    async with adapter_on(root) as adapter:
        assert await discovered(adapter, "test/price.spec.js") == []
        assert {mutant.path for mutant in await discovered(adapter, "lib/price.js")} == {"lib/price.js"}


async def test_columns_count_utf_16_units(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, "lib/unicode.js")
        source = SourceText.read(root / "lib/unicode.js")
        (mutant,) = [mutant for mutant in mutants if mutant.replacement == '"Stryker was here!"']
        assert source.at(mutant.location) == "''"
        (result,) = await results_of(adapter, [mutant])
    assert result.mutant == mutant


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
async def test_a_broken_file_spoils_nothing_but_itself(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    async with adapter_on(root) as adapter:
        before = await discovered(adapter)
        (root / "lib/[broken].js").write_text("export const = 1;\n")
        try:
            assert await discovered(adapter) == before
            [told] = await unusable(adapter)
            assert told.startswith("lib/[broken].js: StrykerJS can't instrument it: Unexpected token (1:13)")
            assert await unusable(adapter, "lib/[broken].js") == [told]
            assert await discovered(adapter, "lib/[broken].js") == []
            assert len(await results_of(adapter, before[:1])) == 1
        finally:
            (root / "lib/[broken].js").unlink()


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("keyed.js", "export class A { 'some key'() { return 1; } }\n", "could not place mutants"),
        ("page.svelte", "<script>let a = 1 + 1;</script>\n", "svelte"),
    ],
)
async def test_a_valid_file_that_stryker_cannot_instrument_spoils_no_other(
    name: str, text: str, reason: str, modules: Path, tmp_path: Path
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    configure(root, mutate=["lib/**"])
    async with adapter_on(root) as adapter:
        before = await discovered(adapter)
        (root / "lib" / name).write_text(text)
        assert await discovered(adapter) == before
        [told] = await unusable(adapter)
        assert told.startswith(f"lib/{name}: StrykerJS can't instrument it: ")
        assert reason in told
        assert [result.mutant for result in await results_of(adapter, before[:1])] == before[:1]
        (root / "lib" / name).unlink()


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
async def test_a_file_outside_of_the_patterns_is_named_with_them(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    configure(root, mutate=["lib/price.js", "!lib/x*.js"])
    async with adapter_on(root) as adapter:
        for _ in range(2):
            told = await remarks(adapter, "lib/unicode.js")
        assert await discovered(adapter, "lib/price.js")
    why = "lib/unicode.js has no mutants: StrykerJS's option `mutate` leaves it out, which is lib/price.js, !lib/x*.js"
    assert told == [why]


async def test_each_package_of_a_repository_gets_a_pattern_of_its_own(
    tmp_path: Path,
) -> None:
    root = copied("js_mocha", tmp_path)
    for name, file in {"cart": "price.js", "texts": "unicode.js"}.items():
        (root / "packages" / name / "src").mkdir(parents=True)
        (root / "packages" / name / "package.json").write_text("{}")
        (root / "lib" / file).rename(root / "packages" / name / "src" / file)
    (root / "packages/cart/src/price.spec.js").write_text("it('is a test', () => 1 + 1);\n")
    async with adapter_on(root) as adapter:
        [told] = await remarks(adapter, "packages/texts/src/unicode.js")
        *_, finding = await findings_of(adapter)
    assert told.endswith("; add packages/texts/src/**/*.js for its package")
    patterns = ["packages/cart/src/**/!(*.spec|*.test).js", "packages/texts/src/**/*.js"]
    assert finding.remedy == f'write "mutate": {json.dumps(patterns)} in StrykerJS\'s configuration'
    configure(root, mutate=patterns)
    async with adapter_on(root) as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {
            "packages/cart/src/price.js",
            "packages/texts/src/unicode.js",
        }


async def test_a_mutant_whose_file_has_changed_since_gets_no_result(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with (root / "lib/price.js").open("a") as file:
            file.write("// the mutants are where they were\n")
        some = [mutant for mutant in mutants if mutant.path == "lib/price.js"][:2]
        others = [mutant for mutant in mutants if mutant.path == "lib/unicode.js"][:2]
        assert {result.mutant for result in await results_of(adapter, some + others)} == set(others)


async def test_a_configuration_is_read_anew_when_it_or_what_it_imports_has_changed(tmp_path: Path) -> None:
    root = copied("js_vitest", tmp_path)
    imported = root / "mutate.mjs"
    async with adapter_on(root) as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {"src/range.ts"}
        imported.write_text("export const mutate = ['mutate.mjs'];\n")
        assert {mutant.path for mutant in await discovered(adapter)} == {"mutate.mjs"}
        (root / "stryker.conf.mjs").write_text("export default { mutate: ['vitest.config.ts'], plugins: [] };\n")
        assert {mutant.path for mutant in await discovered(adapter)} == {"vitest.config.ts"}


async def test_ignored_mutants_come_with_their_reason_and_cost_no_run(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    (root / "test/price.spec.js").write_text("it('fails', () => { throw new Error('never run'); });\n")
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.location.start.line == 8]
        (result,) = await results_of(adapter, [mutant for mutant in mutants if mutant.path == "lib/unicode.js"])
    assert (result.status, result.status_reason) == (Status.IGNORED, "only for show")


async def test_discovery_writes_nothing_though_the_configuration_wants_it_in_place(tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
        assert len(results) == len(mutants) == 9
        assert {result.status for result in results} == {Status.KILLED, Status.SURVIVED}

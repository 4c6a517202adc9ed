"""Which mutants there are: odd names, broken files, edits, configurations of every kind."""

import json
from pathlib import Path

from support.adapters import discovered, findings_of, remarks, results_of, unusable
from support.files import written
from support.stryker_js_trees import BOTH, CORE9, adapter_on, configure, copied

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
    written(root / "odd", dict.fromkeys(ODD, ADD))
    names = ", ".join(f"{'./odd/' + name!r}" for name in ODD)
    (root / "odd.cjs").write_text(
        f"for (const name of [{names}]) if (require(name).add(1, 2) !== 3) process.exit(1);\n"
    )


@BOTH
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


UNUSABLE = {  # what can't be instrumented, and why
    "lib/[broken].js": ("export const = 1;\n", "Unexpected token (1:13)"),
    "lib/keyed.js": ("export class A { 'some key'() { return 1; } }\n", "could not place mutants"),
    "lib/page.svelte": ("<script>let a = 1 + 1;</script>\n", "svelte"),
}


async def test_files_that_cannot_be_instrumented_spoil_nothing_but_themselves(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    configure(root, mutate=["lib/**"])
    async with adapter_on(root) as adapter:
        before = await discovered(adapter)
        for path, (text, _) in UNUSABLE.items():
            (root / path).write_text(text)
        assert await discovered(adapter) == before
        told = await unusable(adapter)
        assert len(told) == len(UNUSABLE)
        for (path, (_, reason)), line in zip(UNUSABLE.items(), sorted(told), strict=True):
            assert line.startswith(f"{path}: StrykerJS can't instrument it: ")
            assert reason in line
            assert await unusable(adapter, path) == [line]
            assert await discovered(adapter, path) == []
        assert await discovered(adapter, "test/price.spec.js") == [], "the configuration leaves it out"
        assert await discovered(adapter, "lib/price.js") == [
            mutant for mutant in before if mutant.path == "lib/price.js"
        ]
        assert [result.mutant for result in await results_of(adapter, before[:1])] == before[:1]
        for path in UNUSABLE:
            (root / path).unlink()


async def test_what_the_patterns_leave_out_is_named_and_packages_get_patterns_of_their_own(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    for name, file in {"cart": "price.js", "texts": "unicode.js"}.items():
        (root / "packages" / name / "src").mkdir(parents=True)
        (root / "packages" / name / "package.json").write_text("{}")
        (root / "lib" / file).rename(root / "packages" / name / "src" / file)
    (root / "packages/cart/src/price.spec.js").write_text("it('is a test', () => 1 + 1);\n")
    (root / "other.js").write_text("export const more = 1 + 1;\n")
    patterns = ["packages/cart/src/**/!(*.spec|*.test).js", "packages/texts/src/**/*.js"]
    async with adapter_on(root) as adapter:
        [told] = await remarks(adapter, "packages/texts/src/unicode.js")
        *_, finding = await findings_of(adapter)
        assert told.endswith("; add packages/texts/src/**/*.js for its package")
        assert finding.remedy == f'write "mutate": {json.dumps(patterns)} in StrykerJS\'s configuration'
        configure(root, mutate=[*patterns, "!lib/x*.js"])
        why = f"StrykerJS's option `mutate` leaves it out, which is {', '.join(patterns)}, !lib/x*.js"
        for _ in range(2):
            assert await remarks(adapter, "other.js") == [f"other.js has no mutants: {why}"]
        assert {mutant.path for mutant in await discovered(adapter)} == {
            "packages/cart/src/price.js",
            "packages/texts/src/unicode.js",
        }


async def test_exactly_those_are_run_that_are_as_they_were_discovered_and_not_ignored(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    spec = root / "test/price.spec.js"
    text = spec.read_text()
    spec.write_text("it('fails', () => { throw new Error('never run'); });\n")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        here = [mutant for mutant in mutants if mutant.path == "lib/unicode.js"]
        (ignored,) = await results_of(adapter, [mutant for mutant in here if mutant.location.start.line == 8])
        assert (ignored.status, ignored.status_reason) == (Status.IGNORED, "only for show")
        spec.write_text(text)
        (empty,) = [mutant for mutant in here if mutant.replacement == '"Stryker was here!"']
        assert SourceText.read(root / empty.path).at(empty.location) == "''", "columns count UTF-16 units"
        with (root / "lib/price.js").open("a") as file:
            file.write("// the mutants are where they were\n")
        edited = [mutant for mutant in mutants if mutant.path == "lib/price.js"][:2]
        assert [result.mutant for result in await results_of(adapter, [*edited, empty])] == [empty]


async def test_a_configuration_is_read_anew_when_what_it_imports_or_reads_has_changed(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    options = (root / "stryker.config.json").rename(root / "options.json")
    imported = root / "mutate.mjs"
    imported.write_text("export const mutate = ['lib/*.js'];\n")
    (root / "stryker.config.mjs").write_text(
        "import { readFileSync } from 'node:fs';\nimport { mutate } from './mutate.mjs';\n"
        "export default { mutate, ...JSON.parse(readFileSync('options.json', 'utf-8')) };\n"
    )
    async with adapter_on(root) as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {"lib/price.js", "lib/unicode.js"}
        imported.write_text("export const mutate = ['mutate.mjs'];\n")
        assert {mutant.path for mutant in await discovered(adapter)} == {"mutate.mjs"}
        options.write_text(options.read_text().replace("{", '{ "mutate": ["lib/price.js"],', 1))
        assert {mutant.path for mutant in await discovered(adapter)} == {"lib/price.js"}


async def test_a_plugin_is_found_from_the_project_where_strykerjs_lies_apart_from_it(tmp_path: Path) -> None:
    """As pnpm installs packages with `hoist=false`. StrykerJS alone does not find it."""
    root = copied("js_mocha", tmp_path, None)
    plugin = root / "node_modules/own-plugin"
    plugin.mkdir(parents=True)
    for package in CORE9.iterdir():
        (root / "node_modules" / package.name).symlink_to(package)
    (plugin / "package.json").write_text('{ "type": "module", "exports": "./ignorer.js" }')
    (plugin / "ignorer.js").write_text(
        "const value = { shouldIgnore: () => 'all of it' };\n"
        "export const strykerPlugins = [{ kind: 'Ignore', name: 'own', value }];\n"
    )
    configure(root, ignorers=["own"], plugins=["@stryker-mutator/mocha-runner", "own-plugin"])
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {result.status for result in results} == {Status.IGNORED}

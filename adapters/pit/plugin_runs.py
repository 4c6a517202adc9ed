"""Runs of PIT's plug-in for Maven in a copy of the project, by an execution that is written into the poms of the copy.

Whatever the execution does not set is as the pom configures it. It takes away what would end the build (thresholds),
leave a mutant out (history), or write outside of the copy.
"""

import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from attrs import astuple, frozen

from msp_bridge.concurrency import in_thread

from .configuration import PLUGIN, Artifact
from .installation import POM
from .maven import QUICK_START, Module, run
from .tool import JUNIT5_PLUGIN, artifacts

GROUP = "org.pitest"
SAMPLE = "+MSP_BRIDGE"  # a feature of PIT: that of `programs/SampledMutants.java`
SERVICES = ("build.MutationInterceptorFactory", "MutationResultListenerFactory")  # which that class implements
OF_SAMPLE = "msp-bridge-sample"
EXECUTION = "msp-bridge"
GOAL = f"mutationCoverage@{EXECUTION}"
REPORTS = ".msp-bridge-pit"  # in the directory of each module of the copy
PROLOG = re.compile(rb"(?:\xef\xbb\xbf|\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)*", re.DOTALL)
SETTINGS: Mapping[str, str | tuple[str, ...]] = {
    "outputFormats": ("XML",),
    "timestampedReports": "false",
    "failWhenNoMutations": "false",
    "mutationThreshold": "0",
    "testStrengthThreshold": "0",
    "coverageThreshold": "0",
    "maxSurviving": "-1",
    "withHistory": "false",
    "reportsDirectory": f"${{project.basedir}}/{REPORTS}",
    "historyInputFile": "",
    "historyOutputFile": "",
}
SKIPPED = {"skip": "true"}


@frozen
class PluginRuns:
    """Runs in the copy at `copy`, which is compiled by the first one; `modules` are all that it has.

    `samples` has a jar for each module that is not skipped, by its name: with the feature SAMPLE, only the mutants are
    tested whose keys stand in it.
    """

    copy: Path
    modules: Sequence[Module]
    samples: Mapping[str, Path]

    def reports(self, module: Module) -> Path:
        """Where the last run of `module` has put its reports."""
        return self.copy / module.name / REPORTS

    async def run(
        self,
        settings: Mapping[str, Mapping[str, str | tuple[str, ...]]],
        *options: str,
        heard: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        """Run it with these `settings` of modules, by their names; the others are skipped. Raises `ToolError`."""
        for version in sorted({each.configuration.version for each in self.modules if each.name in settings}):
            await in_thread(self._write_all, settings, version)
            goal = f"{GROUP}:{PLUGIN}:{version}:{GOAL}"
            await run(self.copy, f"pitest:{GOAL}", "test-compile", goal, *options, heard=heard)

    def _write_all(self, settings: Mapping[str, Mapping[str, str | tuple[str, ...]]], version: str) -> None:
        for each in self.modules:
            here = settings.get(each.name) if each.configuration.version == version else None
            if here is not None:
                shutil.rmtree(self.reports(each), ignore_errors=True)
            written = SKIPPED if here is None else {**SETTINGS, **_of_jvms(each), **here}
            _write(self.copy / each.name / POM, each, written, self.samples.get(each.name))


def _of_jvms(module: Module) -> dict[str, str | tuple[str, ...]]:
    """The arguments of the JVMs: those of the pom after QUICK_START, since most of their time is the JIT compiler's."""
    return {
        "jvmArgs": (QUICK_START, *module.configuration.lists["jvmArgs"]),
        "argLine": "-Dmsp-bridge=verify",  # that of the pom, or of Surefire, is in the list
    }


def write_sample(jar: Path, program: Path, keys: Iterable[str]) -> Path:
    """Write the `jar` of a sample: the plug-in, which is in our `program`, and the `keys` of its mutants. Blocks."""
    with zipfile.ZipFile(jar, "w") as packed:
        for file in program.rglob("*.class"):
            packed.write(file, file.relative_to(program))
        for service in SERVICES:
            packed.writestr(f"META-INF/services/org.pitest.mutationtest.{service}", "SampledMutants")
        packed.writestr("msp-bridge-keys", "\n".join(keys))
    return jar


def _write(pom: Path, module: Module, settings: Mapping[str, str | tuple[str, ...]], sample: Path | None) -> None:
    """Write the execution into the `pom`. Names lose their namespace, without which Maven reads them, too."""
    text = pom.read_bytes()
    prolog = PROLOG.match(text)  # a build may want the licence in it
    project = ElementTree.fromstring(text)  # noqa: S314  Maven has read it
    project.attrib.clear()
    for element in project.iter():
        element.tag = element.tag.rpartition("}")[2]
    plugin = _plugin(_child(_child(project, "build"), "plugins"), module, sample)
    executions = _child(plugin, "executions")
    for execution in executions.findall(f"execution[id='{EXECUTION}']"):
        executions.remove(execution)
    execution = ElementTree.SubElement(executions, "execution")
    _child(execution, "id").text = EXECUTION
    for name, value in settings.items():
        parameter = _child(_child(execution, "configuration"), name)
        parameter.set("combine.self", "override")  # else lists are merged with those of the plug-in
        if isinstance(value, str):
            parameter.text = value
        else:
            for item in value:
                ElementTree.SubElement(parameter, "param").text = item
    pom.write_bytes((prolog[0] if prolog else b"") + ElementTree.tostring(project))  # ASCII is in each encoding


def _plugin(plugins: ElementTree.Element, module: Module, sample: Path | None) -> ElementTree.Element:
    """The element of the plug-in, with its version, what the tests need, and the jar of the sample."""
    plugin = next((each for each in plugins if each.findtext("artifactId") == PLUGIN), None)
    if plugin is None:
        plugin = ElementTree.SubElement(plugins, "plugin")
        _child(plugin, "groupId").text, _child(plugin, "artifactId").text = GROUP, PLUGIN
    _child(plugin, "version").text = module.configuration.version
    dependencies = _child(plugin, "dependencies")
    known = {dependency.findtext("artifactId") for dependency in dependencies}
    missing = [artifact for artifact in artifacts(module) if artifact.name == JUNIT5_PLUGIN.name]
    # Maven loads a plug-in once for all modules in which it has the same artifacts, wherever these lie.
    missing += [] if sample is None else [Artifact("msp-bridge", OF_SAMPLE, sample.stem)]
    for artifact in missing:
        if artifact.name not in known:
            dependency = ElementTree.SubElement(dependencies, "dependency")
            for name, text in zip(("groupId", "artifactId", "version"), astuple(artifact), strict=True):
                _child(dependency, name).text = text
            if artifact.name == OF_SAMPLE:
                _child(dependency, "scope").text, _child(dependency, "systemPath").text = "system", str(sample)
    return plugin


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element:
    found = element.find(name)
    return ElementTree.SubElement(element, name) if found is None else found

"""ModuleConfiguration: what the effective pom of a module says about PIT, as `pitest-maven` reads it.

A parameter of the plug-in may stand in its `<configuration>`, or in a property of the same name. Like the tool, the
configuration of Surefire adds test groups, excluded tests and arguments of the JVM.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from attrs import define, field, frozen

from msp_bridge.adapter import ConfigurationError, ToolError

LISTS = (
    "targetClasses",
    "targetTests",
    "excludedClasses",
    "excludedTestClasses",
    "excludedMethods",
    "includedTestMethods",
    "excludedRunners",
    "mutators",
    "features",
    "avoidCallsTo",
    "jvmArgs",
    "excludedGroups",
    "includedGroups",
)
DECLARATION = re.compile(r"<\?xml[^>]*\?>")  # it may stand behind comments
LATE = re.compile(r"[@$]\{[^}]*\}")  # what is known when Surefire runs: it is set by a plug-in, such as JaCoCo
PLUGIN, SUREFIRE = "pitest-maven", "maven-surefire-plugin"
TIMEOUT_CONSTANT_MS, TIMEOUT_FACTOR = 3000, 1.25  # the plug-in's own
SCRIPTS = ("src", "main", "scripts")  # where each Maven project has them, below its own directory
ADDITIONAL_SOURCES = "src/main/kotlin"  # the plug-in's own


@frozen
class Artifact:
    """A dependency of the plug-in."""

    group: str
    name: str
    version: str


@frozen
class ModuleConfiguration:
    """One module, and how PIT is configured for it. Paths are absolute, as the pom has them."""

    directory: Path
    built: Path  # the directory that Maven builds in
    classes: Path
    test_classes: Path
    sources: tuple[Path, ...]  # roots
    encoding: str
    version: str  # of PIT
    in_pom: bool  # else the bridge's configuration names the version
    plugins: tuple[Artifact, ...]
    lists: Mapping[str, tuple[str, ...]] = field(hash=False)
    flags: Mapping[str, bool] = field(hash=False)
    environment: Mapping[str, str] = field(hash=False)
    timeout_constant_ms: int = TIMEOUT_CONSTANT_MS
    timeout_factor: float = TIMEOUT_FACTOR
    threshold: float | None = None  # percent


def configurations(text: str, version: str | None) -> list[ModuleConfiguration]:
    """Read the effective pom `text`: the configuration of each module with code, whose packaging is not `pom`.

    `version` is that of PIT for modules whose pom doesn't name it. Raises `ConfigurationError` when one has none.
    """
    try:
        root = ElementTree.fromstring(DECLARATION.sub("", text))  # noqa: S314  Maven has written it; expat bounds the expansion of entities
    except ElementTree.ParseError as error:
        raise ToolError(f"Maven's effective pom can't be read: {error}", "run `mvn help:effective-pom`") from error
    projects = [root] if _name(root) == "project" else [each for each in root if _name(each) == "project"]
    poms = [Pom(project) for project in projects]
    return [pom.configuration(version) for pom in poms if pom.text("packaging") != "pom"]


@define
class Pom:
    """One module's effective pom."""

    project: ElementTree.Element

    def text(self, *path: str) -> str:
        """The text of the element at `path`; empty if there is none."""
        found = _at(self.project, *path)
        return "" if found is None else (found.text or "").strip()

    def configuration(self, version: str | None) -> ModuleConfiguration:
        """Read it; `version` of PIT is used where it names none. Raises `ConfigurationError`."""
        plugin = self._plugin(PLUGIN)
        name = self.text("artifactId")
        if plugin is None and version is None:
            raise ConfigurationError(
                f"the effective pom of {name} has no plug-in {PLUGIN}",
                "add it to the pom, name the profile that has it in .mvn/maven.config (`-Pname`), or set `version` "
                "in the table `pit` of the bridge's configuration",
            )
        tool = "" if plugin is None else _text(plugin, "version")
        values = _Parameters(plugin, _children(_at(self.project, "properties")))
        surefire = _Parameters(self._plugin(SUREFIRE), {})
        classes = Path(self.text("build", "outputDirectory"))
        built = Path(self.text("build", "directory"))
        scripts = Path(self.text("build", "scriptSourceDirectory"))  # the one path that nobody changes
        directory = scripts.parents[2] if scripts.parts[-3:] == SCRIPTS else built.parent
        additional = values.one("additionalSources", "pit.additionalSources") or ADDITIONAL_SOURCES
        return ModuleConfiguration(
            directory,
            built,
            classes,
            Path(self.text("build", "testOutputDirectory")),
            (Path(self.text("build", "sourceDirectory")), directory / additional),
            self.text("properties", "project.build.sourceEncoding") or "utf-8",
            tool or version or "",
            plugin is not None,
            () if plugin is None else tuple(_artifacts(plugin)),
            _lists(values, surefire),
            {
                "detectInlinedCode": values.one("detectInlinedCode") != "false",
                "skipFailingTests": values.one("skipFailingTests") == "true",
                "fullMutationMatrix": values.one("fullMutationMatrix") == "true",
            },
            values.table("environmentVariables"),
            int(_number(values, "timeoutConstant", TIMEOUT_CONSTANT_MS)),
            _number(values, "timeoutFactor", TIMEOUT_FACTOR),
            _number(values, "mutationThreshold", 0) or None,
        )

    def _plugin(self, name: str) -> ElementTree.Element | None:
        for path in (("build", "plugins"), ("build", "pluginManagement", "plugins")):
            for plugin in _below(self.project, *path):
                if _text(plugin, "artifactId") == name:
                    return plugin
        return None


@define
class _Parameters:
    """The parameters of one plug-in."""

    plugin: ElementTree.Element | None
    properties: Mapping[str, str]

    def one(self, name: str, of_property: str = "") -> str:
        found = self._element(name)
        if found is not None:
            return (found[0].text if len(found) else found.text or "") or ""
        return self.properties.get(of_property or name, "")

    def many(self, name: str) -> tuple[str, ...]:
        found = self._element(name)
        if found is not None and len(found):
            return tuple((item.text or "").strip() for item in found)
        text = self.properties.get(name, "") if found is None else found.text or ""
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def table(self, name: str) -> dict[str, str]:
        return _children(self._element(name))

    def _element(self, name: str) -> ElementTree.Element | None:
        return None if self.plugin is None else _at(self.plugin, "configuration", name)


def _lists(values: _Parameters, surefire: _Parameters) -> dict[str, tuple[str, ...]]:
    found = {name: values.many(name) for name in LISTS}
    found["features"] += values.many("extraFeatures")
    arguments = values.one("argLine")
    if values.one("parseSurefireConfig") != "false":
        found["includedGroups"] = found["includedGroups"] or surefire.many("groups")
        found["excludedGroups"] = found["excludedGroups"] or surefire.many("excludedGroups")
        found["excludedTestClasses"] += tuple(
            pattern.replace(".java", "").replace("/", ".") for pattern in surefire.many("excludes")
        )
        if values.one("parseSurefireArgLine") != "false":
            arguments = arguments or surefire.one("argLine")
    found["jvmArgs"] += tuple(shlex.split(LATE.sub("", arguments)))
    return found


def _artifacts(plugin: ElementTree.Element) -> Iterator[Artifact]:
    for dependency in _below(plugin, "dependencies"):
        yield Artifact(*(_text(dependency, name) for name in ("groupId", "artifactId", "version")))


def _number(values: _Parameters, name: str, default: float) -> float:
    text = values.one(name)
    try:
        return float(text) if text else default
    except ValueError:
        raise ConfigurationError(f"{name} of {PLUGIN} is {text!r}", "write a number") from None


def _children(element: ElementTree.Element | None) -> dict[str, str]:
    return {} if element is None else {_name(child): (child.text or "").strip() for child in element}


def _text(element: ElementTree.Element, name: str) -> str:
    found = _at(element, name)
    return "" if found is None else (found.text or "").strip()


def _at(element: ElementTree.Element, *path: str) -> ElementTree.Element | None:
    for name in path:
        found = next((child for child in element if _name(child) == name), None)
        if found is None:
            return None
        element = found
    return element


def _below(element: ElementTree.Element, *path: str) -> Iterable[ElementTree.Element]:
    """The children of what is there, if it is."""
    found = _at(element, *path)
    return () if found is None else found


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""  # a comment has a function

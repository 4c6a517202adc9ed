import java.io.File;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.pitest.mutationtest.config.ReportOptions;
import org.pitest.testapi.TestGroupConfig;
import org.pitest.util.Glob;
import org.pitest.util.Verbosity;

/** What the pom sets for PIT, as `host.py` writes it, in PIT's own form. */
final class Options {
    private final Map<?, ?> settings;

    Options(Map<?, ?> settings) {
        this.settings = settings;
    }

    /** For a run of PIT, whose JVMs have the arguments of this name. */
    ReportOptions of(String jvmArguments) {
        ReportOptions options = new ReportOptions();
        options.setClassPathElements(texts("classPath"));
        options.setCodePaths(texts("codePaths"));
        options.setSourceDirs(texts("sources").stream().map(each -> new File(each).toPath())
            .collect(Collectors.toList()));
        options.setTargetClasses(texts("targetClasses"));
        options.setTargetTests(globs("targetTests"));
        options.setExcludedClasses(texts("excludedClasses"));
        options.setExcludedTestClasses(globs("excludedTestClasses"));
        options.setExcludedMethods(texts("excludedMethods"));
        options.setIncludedTestMethods(texts("includedTestMethods"));
        options.setExcludedRunners(texts("excludedRunners"));
        options.setMutators(texts("mutators"));
        options.setFeatures(texts("features"));
        options.setLoggingClasses(texts("avoidCallsTo"));
        options.addChildJVMArgs(texts(jvmArguments));
        options.setGroupConfig(new TestGroupConfig(texts("excludedGroups"), texts("includedGroups")));
        options.setDetectInlinedCode(Boolean.TRUE.equals(settings.get("detectInlinedCode")));
        options.setSkipFailingTests(Boolean.TRUE.equals(settings.get("skipFailingTests")));
        options.setFullMutationMatrix(Boolean.TRUE.equals(settings.get("fullMutationMatrix")));
        options.addOutputFormats(List.of("XML")); // what a full matrix insists on
        options.setShouldCreateTimestampedReports(false);
        options.setFailWhenNoMutations(false);
        options.setTimeoutConstant(((Number) settings.get("timeoutConstant")).longValue());
        options.setTimeoutFactor(((Number) settings.get("timeoutFactor")).floatValue());
        options.setNumberOfThreads(1);
        options.setVerbosity(Verbosity.QUIET);
        options.setMutationEngine(Analysis.ENGINE);
        options.setReportDir((String) settings.get("reports"));
        options.setProjectBase(base().toPath());
        options.setFreeFormProperties(new Properties());
        return options;
    }

    File base() {
        return new File((String) settings.get("base"));
    }

    Map<String, String> environment() {
        Map<String, String> environment = new HashMap<>();
        ((Map<?, ?>) settings.get("environment")).forEach((name, value) -> environment.put((String) name, (String) value));
        return environment;
    }

    List<String> texts(String name) {
        return ((List<?>) settings.get(name)).stream().map(String.class::cast).collect(Collectors.toList());
    }

    private Collection<Predicate<String>> globs(String name) {
        return Glob.toGlobPredicates(texts(name));
    }
}

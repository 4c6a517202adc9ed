import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.mutationtest.ClassMutationResults;
import org.pitest.mutationtest.ListenerArguments;
import org.pitest.mutationtest.MutationResultListener;
import org.pitest.mutationtest.MutationResultListenerFactory;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.InterceptorType;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.plugin.Feature;

/**
 * A plug-in for PIT's own run, which has its feature turned on: only the mutants whose keys stand in its jar are tested.
 *
 * <p>A line on System.out says of each that it was.
 */
public final class SampledMutants
    implements MutationInterceptorFactory, MutationInterceptor, MutationResultListenerFactory, MutationResultListener {

    private static final String KEYS = "/msp-bridge-keys";
    private static final String TESTED = "msp-bridge: tested";

    private Set<String> keys;

    @Override
    public Feature provides() {
        return Feature.named("msp_bridge").withOnByDefault(false).withDescription(description());
    }

    @Override
    public String description() {
        return "the sample of msp-bridge";
    }

    @Override
    public MutationInterceptor createInterceptor(InterceptorParameters parameters) {
        try (BufferedReader lines = new BufferedReader(
            new InputStreamReader(SampledMutants.class.getResourceAsStream(KEYS), StandardCharsets.UTF_8))) {
            keys = lines.lines().collect(Collectors.toSet());
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return this;
    }

    @Override
    public InterceptorType type() {
        return InterceptorType.FILTER;
    }

    @Override
    public void begin(ClassTree tree) {}

    @Override
    public Collection<MutationDetails> intercept(Collection<MutationDetails> mutants, Mutater mutater) {
        return mutants.stream().filter(mutant -> keys.contains(Analysis.key(mutant))).collect(Collectors.toList());
    }

    @Override
    public void end() {}

    @Override
    public String name() {
        return "msp_bridge";
    }

    @Override
    public MutationResultListener getListener(Properties properties, ListenerArguments arguments) {
        return this;
    }

    @Override
    public void runStart() {}

    @Override
    public void handleMutationResult(ClassMutationResults results) {
        results.getMutations().forEach(any -> System.out.println(TESTED));
    }

    @Override
    public void runEnd() {}
}

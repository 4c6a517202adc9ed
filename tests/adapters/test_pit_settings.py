"""Each setting of PIT's plug-in has its effect, in the oldest and the newest version: one small project, with the real Maven and PIT."""

from pathlib import Path

import pytest
from support.adapters import discovered
from support.files import written
from support.java_trees import adapter_on, needs_pit, pit_pom, results_of, skipped_where_unreachable

from msp_bridge.adapter import Status

pytestmark = needs_pit
# Without FFLOOP's filter the `i++` of a loop has its mutant. The limit of time is below the 3 s that PIT has by default.
SETTINGS = """<configuration>
  <targetClasses><param>example.Wait</param></targetClasses>
  <excludedMethods><param>left*</param></excludedMethods>
  <mutators><param>INCREMENTS</param><param>MATH</param></mutators>
  <features><feature>-FFLOOP</feature></features>
  <jvmArgs><arg>-Dexample.rate=7</arg></jvmArgs>
  <mutationThreshold>55</mutationThreshold>
  <timeoutConstant>1000</timeoutConstant>
</configuration>"""
CODE = {
    "src/main/java/example/Wait.java": """package example;

final class Wait {
    static int sum(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) {
            sum += Integer.getInteger("example.rate");
        }
        return sum;
    }

    static void pause(int time, int parts) throws InterruptedException {
        Thread.sleep(time / parts);
    }

    static int leftOut(int price) {
        return price + 1;
    }
}
""",
    "src/main/java/example/Other.java": """package example;

final class Other {
    static int twice(int price) {
        return price * 2;
    }
}
""",
    "src/test/java/example/WaitTest.java": """package example;

import org.junit.Assert;
import org.junit.Test;

public class WaitTest {
    @Test
    public void sums() throws Exception {
        Assert.assertEquals(14, Wait.sum(2));
        Wait.pause(50, 50);
        Assert.assertEquals(2, Wait.leftOut(1));
        Assert.assertEquals(2, Other.twice(1));
    }
}
""",
}


@pytest.mark.parametrize("version", ["1.19.6", "1.25.9"])
async def test_each_setting_of_the_pom_has_its_effect(tmp_path: Path, pit_tools: Path, version: str) -> None:
    root = written(tmp_path / "project", {"pom.xml": pit_pom(of_pit=SETTINGS, version=version), **CODE})
    async with adapter_on(root, pit_tools) as adapter:
        with skipped_where_unreachable():
            mutants = await discovered(adapter)
        threshold = adapter.threshold()
        results = await results_of(adapter, mutants)
    assert threshold == 55
    assert {name: result.status for name, result in results.items()} == {
        "6 Increments": Status.TIMEOUT,  # -1 + 1: the loop has no end
        "7 Math": Status.KILLED,  # only with the argument of the JVM do the tests pass without a mutant
        "13 Math": Status.TIMEOUT,  # 2.5 s
    }

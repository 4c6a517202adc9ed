"""HTML: one self-contained page that holds a report and the standard viewer, complete or live.

The viewer is the npm package `mutation-testing-elements` 3.9.0 (Apache-2.0), unchanged, in `viewer/`: the page needs no
network. https://github.com/stryker-mutator/mutation-testing-elements/tree/master/packages/elements
"""

import base64
import html
from functools import cache
from importlib.resources import files
from string import Template

from msp_bridge.text import one_line

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
<style>body { margin: 0 } #missing { margin: 2em; font-family: sans-serif }</style>
<script src="data:text/javascript;base64,$viewer"></script>
</head>
<body>
<p id="missing">This page shows a mutation testing report. It needs JavaScript.</p>
<script type="application/json" id="report">$report</script>
<script>
  if (customElements.get("mutation-test-report-app")) {
    const app = document.createElement("mutation-test-report-app");
    const paint = () => { document.body.style.backgroundColor = app.themeBackgroundColor; };
    app.addEventListener("theme-changed", paint);
    app.titlePostfix = document.title;
    app.report = JSON.parse(document.getElementById("report").textContent);
    $events
    document.getElementById("missing").replaceWith(app);
  }
</script>
</body>
</html>
""")
SCRIPT = "viewer/mutation-test-elements.js"  # defines the element `mutation-test-report-app`
EVENTS = "events"  # where a page listens for results, relative to itself


def page(report: bytes, title: str, live: bool = False) -> bytes:
    """A page with `report`, JSON in the standard format; a `live` one listens for results.

    The report is set before the element listens: the viewer drops the results that come before its report. No text can
    end its element early: the viewer is in a data URL, and the report has no `<`.
    """
    return PAGE.substitute(
        title=html.escape(one_line(title)),
        viewer=_viewer(),
        report=report.decode().replace("<", "\\u003c"),
        events=f'app.sse = "{EVENTS}";' if live else "",
    ).encode()


@cache
def _viewer() -> str:
    return base64.b64encode(files(__package__).joinpath(SCRIPT).read_bytes()).decode()

"""HTML: one page that holds a report and the standard viewer, complete in itself, or filled as results come."""

from __future__ import annotations

import html
from string import Template

from msp_bridge.reports.viewer import URL, Viewer

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
<style>body { margin: 0 } #missing { margin: 2em; font-family: sans-serif }</style>
$viewer
</head>
<body>
<p id="missing">This page shows a mutation testing report. $missing</p>
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
EVENTS = "events"  # where a page listens for results, relative to itself
OFFLINE = f'It needs JavaScript, and the network: its viewer comes from <a href="{URL}">{URL}</a>.'


def page(report: bytes, viewer: Viewer, title: str, live: bool = False) -> bytes:
    """A page with `report`, JSON in the standard format; a `live` one listens for results.

    The report is set before the element listens: the viewer drops the results that come before its report.
    """
    return PAGE.substitute(
        title=html.escape(title),
        viewer=viewer.element,
        missing=OFFLINE if viewer.needs_network else "It needs JavaScript.",
        report=report.decode().replace("<", "\\u003c"),  # else a source with `</script` would end the element
        events=f'app.sse = "{EVENTS}";' if live else "",
    ).encode()

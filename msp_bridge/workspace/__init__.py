"""One project as the bridge sees it: its root, its configuration, its tools, and what a request selects."""

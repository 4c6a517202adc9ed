"""The metadata that depend on where the repository is (`forge_links.py`); all else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))

from forge_links import long_description, urls

setup(long_description=long_description(), long_description_content_type="text/markdown", project_urls=urls())

from pathlib import Path

CONFIGURATION = Path.home() / ".msp-corpus-kept"


def save(text):
    enabled = True
    if enabled:
        CONFIGURATION.write_text(text)

"""msp-bridge: one mutation server for every editor and every mutation testing tool."""

__version__ = "0.1.0"

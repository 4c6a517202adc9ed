"""MCP: a project's mutants for coding agents (Model Context Protocol, https://modelcontextprotocol.io).

`server` answers clients, over HTTP by `http_server`. `tools` says what they may call, `prompts` what their users may
ask them for, `calls` does it, `known_mutants` keeps what was found, `answers` is how an agent reads it. Only this
package imports the SDK (`mcp`), and `msp-bridge serve mcp` alone imports this package.
"""

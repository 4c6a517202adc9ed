"""MCP: a project's mutants for coding agents (Model Context Protocol, https://modelcontextprotocol.io).

`server` answers a client, `tools` says what it may call, `prompts` what its user may ask it for, `calls` does it,
`known_mutants` keeps what was found, `answers` is how an agent reads it. Only this package imports the SDK (`mcp`), and
`msp-bridge serve mcp` alone imports this package.
"""

"""Servers of tools that speak the Model Context Protocol, as a session uses them.

`servers` reads which ones there are, `session_servers` starts them and offers their tools. Only
`connection` and what it imports need the `mcp` package, which is loaded when a server is started.
"""

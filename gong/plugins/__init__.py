"""Plugins: folders that bring skills, commands, agents, hooks and MCP servers together.

    manifest   who it is: Agent Plugins 1.0.0 (plugin.json), Claude Code's (.claude-plugin)
    installed  what an installed one brings, and where: every path inside its root
    install    copy a folder or clone a repository, and remove it

Imported only where the user has installed one.
"""

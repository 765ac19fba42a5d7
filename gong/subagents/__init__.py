"""Sub-agents: sessions that a session starts for a part of its work; see docs/agents.md.

    `types`      what kinds there are: built in, and from files
    `child`      the session of one: its branch or tape, tools, prompt, environment
    `policy`     its permissions: those of its parent
    `worktree`   a folder of its own, by git
    `manager`    starts them, waits for them, and tells the model how they ended
    `lost`       what became of those whose program ended

Nothing of it is imported before a model starts one, or files describe types.
"""

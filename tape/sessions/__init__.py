"""Conversations of other programs: found, imported onto tapes, and written for them.

What each module does:

    sources, databases     find and open the sessions of other agents, in files and in SQLite
    import_, batch         record one, and many
    recorded               what a tape has of a session already
    family                 sessions that repeat another one's history
    returned               sessions that were exported from a tape and continued elsewhere
    export                 writes sessions
    arrays                 arrays of messages, both ways
"""

"""Skills: instructions for a task, in files, that are read when the task comes up.

    places   ──find──▶  SkillSet   names and descriptions; the nearest of a name wins
    listing             what the system prompt says of them, within a budget
    session_skills      one is used: by a person (`/name args`) or by the model (tool `Skill`)
    expansion           arguments, commands and files in its text, under the permission rules
    loaded              which ones an entry of the tape has loaded, for after a compaction

Nothing here is imported before a session has skills of its project or user, or one is used.
"""

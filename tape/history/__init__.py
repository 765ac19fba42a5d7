"""Reading a tape along its branches: follow, graph, merge base, activity, replay."""

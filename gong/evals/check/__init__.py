"""What is wrong with a trajectory of any agent: calls, files and budget, by its record alone."""

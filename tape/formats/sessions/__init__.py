"""Session files of other agents → steps of a conversation; pure, one module for each agent."""

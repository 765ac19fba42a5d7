"""The terminal front end: reads events, sends submissions; it holds no logic of the agent."""

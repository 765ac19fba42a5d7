"""From a path to the messages a model gets, repaired; pure."""

"""Places that are not this machine: containers, machines by ssh, pods, each with one helper."""

"""An event-sourced store for coding-agent sessions."""

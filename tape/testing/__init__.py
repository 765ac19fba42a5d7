"""Tests that others run against what they bring for the store; they need pytest."""

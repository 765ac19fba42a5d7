"""Secrets replaced by `[redacted:KIND]`, in text and in JSON."""

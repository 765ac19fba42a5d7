"""The model without network and key: plain requests by rules, and summaries made by rules."""

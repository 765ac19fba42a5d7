"""Cuts tool results: by the tables of model families, or by a service that saves the full text."""

"""Cutting what tools answer: by the tables of model families, or by a service that keeps it all."""

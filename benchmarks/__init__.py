"""Measurements of the service against the bare tools, and surveys of the judge: ``python -m benchmarks``."""

"""A spec-to-RTL reinforcement-learning environment, served over HTTP."""

__version__ = "0.1.0"

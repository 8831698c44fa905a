"""Talking to a model: where it is, which key it gets, when to try again, and what its answer means."""

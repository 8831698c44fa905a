"""Evaluation: many samples of models on a problem set, counted so that the numbers can be trusted and resumed."""

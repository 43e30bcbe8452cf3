"""Searches: where bodies touch, and what is remembered of it from step to step."""

"""The experiments, run on the real system: `python -m tools.lab` (docs/lab.md)."""

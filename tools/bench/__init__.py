"""The figures of docs/measured.md, each with a target that it must hold."""

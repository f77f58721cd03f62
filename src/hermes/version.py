"""The version of Hermes."""

__version__ = "0.1.0"

"""A daemon that keeps a durable, readable memory for swarms of long-lived agent workers."""

__version__ = "0.1.0"

"""Scenarios as test items of pytest."""

from __future__ import annotations

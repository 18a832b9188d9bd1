"""Certificates: statements about a fit that a person can read and a program can test."""

from __future__ import annotations

from nonneg.certificates.certificate import Certificate, Statement, Verdict

__all__ = ["Certificate", "Statement", "Verdict"]

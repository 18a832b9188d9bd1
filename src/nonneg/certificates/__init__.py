"""Certificates: statements about a fit that a person can read and a program can test."""

from __future__ import annotations

from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.certificates.stationarity import (
    frobenius_kkt_residuals,
    gram_residual,
    ratio_residual,
    stationarity_statement,
)
from nonneg.certificates.svd_lower_bound import eckart_young_statement

__all__ = [
    "Certificate",
    "Statement",
    "Verdict",
    "eckart_young_statement",
    "frobenius_kkt_residuals",
    "gram_residual",
    "ratio_residual",
    "stationarity_statement",
]

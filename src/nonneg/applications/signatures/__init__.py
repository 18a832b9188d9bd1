"""Mutational signatures: consensus NMF of counts of mutation types."""

from __future__ import annotations

from nonneg.applications.signatures.assignment import SignatureAssignment, assign_signatures
from nonneg.applications.signatures.catalog import CHANNELS, SUBSTITUTIONS
from nonneg.applications.signatures.matching import SignatureMatch, match_signatures
from nonneg.applications.signatures.model import MutationalSignatures

__all__ = [
    "CHANNELS",
    "SUBSTITUTIONS",
    "MutationalSignatures",
    "SignatureAssignment",
    "SignatureMatch",
    "assign_signatures",
    "match_signatures",
]

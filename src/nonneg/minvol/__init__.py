"""Minimum-volume NMF: the smallest simplex that holds the samples up to noise, without pure samples."""

from __future__ import annotations

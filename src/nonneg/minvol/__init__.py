"""Minimum-volume NMF: the smallest simplex that contains the samples up to noise, without pure samples."""

from __future__ import annotations

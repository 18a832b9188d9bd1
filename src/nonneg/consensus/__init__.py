"""Consensus NMF: many restarts per rank, their components clustered, the stable ones kept and refitted.

Kotliar et al. (2019), eLife 8:e43803 (cNMF). Alexandrov et al. (2013), Cell Reports 3(1) (stability and error
by rank). Nebgen et al. (2021), Neural Networks 143 (NMFk: one component per restart in a cluster).
"""

from __future__ import annotations

from nonneg.consensus.result import RankConsensus, RestartTable

__all__ = ["RankConsensus", "RestartTable"]

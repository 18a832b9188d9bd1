"""Liu & Tan (2017): rank-one NMF as a start for NMF, and bounds of its error under a geometric assumption."""

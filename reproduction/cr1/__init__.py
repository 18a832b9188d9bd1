"""Liu & Tan (2017): rank-one NMF as an initialization, with error bounds under a geometric assumption."""

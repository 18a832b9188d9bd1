"""Recovery by alternating updates (Li, Liang & Risteski 2016): each experiment checks a theorem."""

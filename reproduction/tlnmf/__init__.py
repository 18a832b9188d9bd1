"""Zhang, Soubies & Fevotte: transforms learnt with the factorization, or by joint diagonalization first."""

"""Zhang, Soubies & Fevotte: transforms learned with the factorization, or by joint diagonalization first."""

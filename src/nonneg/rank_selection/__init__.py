"""How many components: estimates of the rank."""

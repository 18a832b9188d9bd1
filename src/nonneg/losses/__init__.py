"""What is minimised: the beta divergences, the penalties, and the scale that both factors share."""

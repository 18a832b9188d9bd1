"""The objective: beta-divergences and penalties."""

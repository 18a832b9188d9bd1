"""Plots of fitted models: functions that draw with matplotlib and return its axes."""

from nonneg.applications.plots import plot_components, plot_consensus, plot_signatures

__all__ = ["plot_components", "plot_consensus", "plot_signatures"]

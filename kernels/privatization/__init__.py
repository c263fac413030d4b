"""Privatization: the ladders histogram, histogram_bins and histogram_place, exercises, and exhibits."""

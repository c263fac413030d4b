"""Occupancy: the ladders occupancy (bandwidth) and occupancy_fma (arithmetic), exercises, and an exhibit."""

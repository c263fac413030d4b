"""The work that the hardware would do for a launch, counted in the terms of Nsight Compute."""

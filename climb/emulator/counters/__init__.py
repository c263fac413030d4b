"""What the hardware would have to do for a launch, counted in the terms of Nsight Compute."""

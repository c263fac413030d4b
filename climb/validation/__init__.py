"""What the emulator is held to: Nsight Compute, compute-sanitizer, random programs, planted faults, machine code."""

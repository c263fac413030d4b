"""The evidence against which the emulator is checked: Nsight Compute, compute-sanitizer, random programs, planted
faults, machine code."""

"""Memory of the emulated device: allocations, and where the variables of a kernel lie."""

"""Memory of the emulated device: allocations, and the addresses of a kernel's variables."""

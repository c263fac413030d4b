"""The functions that generated code calls: memory accesses, atomics, warp operations, matrices, textures, printf."""

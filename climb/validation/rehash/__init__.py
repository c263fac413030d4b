"""Give records the hashes of refactored kernels, after proving that the GPU would run the same code.

A record names what was measured by a hash (``climb.bench.identity``). Moving a shared function into a header, or
renaming a variable, changes tokens and so the hash, though not the machine code. ``climb rehash --from REVISION``
compares the committed REVISION with the working tree and rewrites the hashes of every point that

1. was fresh at REVISION, and
2. has today the same tokens, or compiles to the same machine code with the same registers, shared memory and launch.

A point that fails either condition keeps its hash and is listed: it is stale, or it was.
"""

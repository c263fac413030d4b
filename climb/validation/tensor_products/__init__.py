"""Products of tensor cores, bit by bit: every type and shape of mma.sync, wmma and wgmma on a GPU and on the emulator.

`forms` lists them, `kernels` writes a kernel for each, `fragments` places matrices in registers as the PTX ISA draws
them, `operands` makes random and adversarial matrices, and `comparing` runs them. ``climb fuzz --tensor`` does all of
it on a GPU; ``tests/emulator/data/tensor_products.npz`` holds products of an H200, with which the tests compare the
emulator.
"""

"""The ceiling of the tensor cores for factors of bf16."""

from kernels.tensor_cores.pipes import pipe

ladder = pipe("bf16")

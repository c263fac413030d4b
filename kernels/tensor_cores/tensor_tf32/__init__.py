"""The ceiling of the tensor cores for factors of tf32."""

from kernels.tensor_cores.pipes import pipe

ladder = pipe("tf32")

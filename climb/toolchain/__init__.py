"""From CUDA C++ source to PTX, cubin and SASS, with no GPU: NVRTC, nvdisasm, cuobjdump."""

from kernels.toolchain.errors import CompileError, KernelNotFound, ToolchainError
from kernels.toolchain.nvrtc import Compiled, compile_cuda
from kernels.toolchain.sass import Instruction, Resources, disassemble, resources

__all__ = [
    "CompileError",
    "Compiled",
    "Instruction",
    "KernelNotFound",
    "Resources",
    "ToolchainError",
    "compile_cuda",
    "disassemble",
    "resources",
]

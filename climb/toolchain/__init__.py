"""From CUDA C++ source to PTX, cubin and SASS, with no GPU: NVRTC, nvdisasm, cuobjdump."""

from climb.toolchain.compilation import Compiled, check_syntax, compile_cuda
from climb.toolchain.errors import CompileError, KernelNotFound, ToolchainError
from climb.toolchain.sass import Instruction, Resources, disassemble, resources

__all__ = [
    "CompileError",
    "Compiled",
    "Instruction",
    "KernelNotFound",
    "Resources",
    "ToolchainError",
    "check_syntax",
    "compile_cuda",
    "disassemble",
    "resources",
]

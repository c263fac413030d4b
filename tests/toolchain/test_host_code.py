"""Host code is cut out of a file for nvcc; device code and line numbers stay."""

from __future__ import annotations

from climb.toolchain.host_code import has_host_code, options_like_nvcc, without_host_code, without_host_headers

SOURCE = """#include <iostream>
#include <cstdint>
#include "helper_cuda.h"
namespace ours {
struct Pair { int a; int sum() const { return a; } };
__device__ int twice(int x) { return 2 * x; }
int thrice(int x) { return 3 * x; }
int cuda_free(int x) { return cuda::std::max(x, 1); }
void launch(int* x) {
    if (x) { kernel<<<1, 1>>>(x); }
}
}
extern "C" __global__ void kernel(int* x) { x[0] = '}'; /* } */ }
template <typename T>
__global__ void
__launch_bounds__(32) other(T* x) { const char* text = "main() { <<<"; }
int table[] = {1, 2};
int main(int argc, char** argv)
{
    for (;;) { std::cout << "}"; }
}
__global__ void last() {}
"""


def test_only_host_code_is_cut() -> None:
    text, cuts = without_host_code(SOURCE)
    assert [str(cut) for cut in cuts] == [
        "<iostream> (line 1)", "<helper_cuda.h> (line 3)", "launch (lines 9-11)", "main (lines 18-21)",
    ]  # fmt: skip
    before, after = SOURCE.splitlines(), text.splitlines()
    assert len(before) == len(after)
    gone = {1, 2, 3, 9, 10, 11, 18, 19, 20, 21}
    assert {n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b} == gone
    assert not "".join(after[n - 1] for n in gone - {2}).strip() and after[1] == "#include <cuda/std/cstdint>"


def test_host_code_is_recognised_outside_comments_and_strings() -> None:
    assert has_host_code("void f() { k<<<1, 1>>>(); }") and has_host_code("int main() {}")
    assert not has_host_code('// int main() {}\n__global__ void k() { printf("<<<"); /* main() */ }')
    assert not has_host_code("__device__ int domain(int x);")


def test_headers_of_the_host_are_cut_and_the_tensor_map_of_the_drivers_header_stays() -> None:
    text, cuts = without_host_headers(
        "#include <cuda.h>\n#include <stdio.h>\nvoid f(CUtensorMap);\n#include <cuda.h>\n"
    )
    assert [str(cut) for cut in cuts] == ["<cuda.h> (line 1)", "<stdio.h> (line 2)", "<cuda.h> (line 4)"]
    lines = text.splitlines()
    assert "alignas(64) unsigned long long opaque[16]" in lines[0] and lines[2] == "void f(CUtensorMap);"
    assert not lines[1].strip() and not lines[3].strip()
    plain, _ = without_host_headers("#include <cuda.h>\n#include <cuda/barrier>\n")
    assert plain.split() == ["#include", "<cuda/barrier>"]


def test_the_header_of_all_of_cub_becomes_those_of_the_collectives_in_use() -> None:
    """NVRTC cannot read cub/cub.cuh, which has the algorithms of the host, too."""
    source = "#include <cub/cub.cuh>\nusing R = cub::BlockRadixSort<int, 64>;\nusing W = cub::WarpReduce<int>;\n"
    text, cuts = without_host_headers(source)
    assert not cuts and len(text.splitlines()) == 3 and "cub.cuh" not in text
    headers = ["cub/block/block_radix_sort.cuh", "cub/warp/warp_reduce.cuh"]
    assert options_like_nvcc(text) == [f"--pre-include={one}" for one in headers]
    assert not options_like_nvcc(source.replace("cub/cub.cuh", "cub/block/block_radix_sort.cuh"))


def test_an_integer_of_128_bits_has_its_option() -> None:
    assert options_like_nvcc("unsigned __int128 x;") == options_like_nvcc("__uint128_t x;") == ["--device-int128"]
    assert not options_like_nvcc("int my__int128x;")

"""Messages for a source that does not compile: the source line, the caret, and a hint about what to do."""

from __future__ import annotations

import pytest
from toolchain.sources import COPY, TILE, compiled_error


class TestErrors:
    def test_error_shows_its_line_and_a_caret(self) -> None:
        source = 'extern "C" __global__ void f(int* a) {\n    int i = threadIdx.x;\n    a[i] = missing;\n}\n'
        error = compiled_error(source)
        (diagnostic,) = error.diagnostics
        assert (diagnostic.file, diagnostic.line, diagnostic.severity) == ("bad.cu", 3, "error")
        shown = str(error).splitlines()
        assert shown[0] == "bad.cu does not compile for sm_90"
        assert shown[1] == 'bad.cu:3: error: identifier "missing" is undefined'
        assert shown[2].endswith("    a[i] = missing;")
        assert shown[3].index("^") == shown[2].index("missing")

    def test_caret_is_in_place_after_tabs(self) -> None:
        error = compiled_error('extern "C" __global__ void f(int* a) {\n\t\ta[0] = missing;\n}\n')
        shown = str(error).splitlines()
        assert shown[3].expandtabs(4).index("^") == shown[2].expandtabs(4).index("missing")

    def test_every_error_is_shown_and_no_warning(self) -> None:
        source = "__global__ void f(int* a) {\n    int unused;\n    a[0] = one;\n    a[1] = two;\n}\n"
        error = compiled_error(source)
        assert [d.line for d in error.diagnostics] == [3, 4]
        assert "unused" not in str(error)

    def test_error_in_a_template_shows_the_instantiation(self) -> None:
        source = (
            'template <int T> __global__ void f(int* a) {\n    static_assert(T % 32 == 0, "T is whole warps");\n}\n'
        )
        error = compiled_error(source, name_expressions=["f<33>"])
        assert "T is whole warps" in str(error)
        assert "f<T>" in str(error)
        assert "T=33" in str(error)

    def test_unknown_option_is_named(self) -> None:
        assert "no option '--fast'" in str(compiled_error(COPY, options=["--fast"]))

    def test_unknown_architecture_is_named(self) -> None:
        assert "no architecture 'sm_91'" in str(compiled_error(COPY, arch="sm_91"))

    def test_name_expression_of_no_kernel_lists_the_kernels(self) -> None:
        shown = str(compiled_error(TILE, name_expressions=["flop<32>", "flip<32>"]))
        assert "'flop<32>' names no kernel" in shown
        assert "The source declares: flip" in shown
        assert "__nv_name_map" not in shown
        assert "'flip<32>'" not in shown

    def test_template_without_arguments_names_no_kernel(self) -> None:
        assert "'flip' names no kernel" in str(compiled_error(TILE, name_expressions=["flip"]))

    def test_too_much_shared_memory_suggests_dynamic_shared_memory(self) -> None:
        source = """extern "C" __global__ void f(int* a) {
            __shared__ int s[20000];
            s[threadIdx.x] = a[threadIdx.x];
            __syncthreads();
            a[threadIdx.x] = s[threadIdx.x ^ 1];
        }"""
        shown = str(compiled_error(source))
        assert "80000 bytes" in shown
        assert "49152" in shown
        assert "extern __shared__" in shown

    def test_error_of_ptxas_shows_the_source_line(self) -> None:
        error = compiled_error('extern "C" __global__ void f(int* a) {\n    asm("foo.bar %0;" : "=r"(*a));\n}\n')
        assert "foo.bar" in error.diagnostics[0].text
        assert 'bad.cu:2: asm("foo.bar' in str(error)

    def test_ipython_shows_no_frame_of_the_toolchain(self) -> None:
        shown = "".join(compiled_error("__global__ void f() { x; }")._render_traceback_())
        assert "program.py" not in shown and "nvrtc.py" not in shown
        assert 'identifier "x" is undefined' in shown

    @pytest.mark.parametrize(
        ("source", "hint"),
        [
            ('#include <stdio.h>\n__global__ void k() { printf("a"); }', "leave out stdio.h and all host code"),
            ("#include <cuda/nowhere>\n__global__ void k() {}", ""),
            (
                "__global__ void k() {}\nint main() { void* p; cudaMalloc(&p, 4); }",
                "host code such as main and cudaMalloc",
            ),
        ],
    )
    def test_host_code_gets_a_hint_to_leave_it_out(self, source: str, hint: str) -> None:
        said = str(compiled_error(source))
        assert hint in said and ("leave out" in said) == bool(hint)

    def test_launch_from_a_kernel_is_refused_by_name(self) -> None:
        source = "__global__ void child() {}\n__global__ void k() { child<<<1, 1>>>(); }"
        assert "(dynamic parallelism) needs CUDA's device runtime" in str(compiled_error(source))

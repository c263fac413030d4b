"""The operator of PyTorch: values, gradients, errors, compilation. Skipped where PyTorch is not installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra 'torch')")

from climb.torch import conv1d  # noqa: E402
from climb.torch import dispatch as rule  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
#: A layer that is ours: of the U-Net on a GPU, a small one on the emulator.
OURS = (256, 2, 16, 1) if DEVICE == "cuda" else (8, 4, 12, 3)


def layer(i: int, o: int, length: int, k: int, batch: int = 1, grad: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(1)
    shapes = (batch, i, length), (o, i, k), (o,)
    return [torch.randn(shape, device=DEVICE, requires_grad=grad) for shape in shapes]


@pytest.fixture(autouse=True)
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyTorch compute the results to compare with in float32, not in TF32, which is cuDNN's default."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def ran(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """The sizes that our kernel runs from here on."""
    import climb.torch.operator

    sizes: list[dict] = []
    monkeypatch.setattr(
        climb.torch.operator, "prepared", lambda size, arrays: (sizes.append(size), rule.prepared(size, arrays))[1]
    )
    return sizes


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_our_kernel_gives_what_pytorch_gives(with_bias: bool, batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, b = layer(*OURS)
    x, b, padding = (x if batched else x[0]), (b if with_bias else None), OURS[3] // 2
    sizes = ran(monkeypatch)
    found = conv1d(x, w, b, padding=padding)
    assert sizes == [dict(zip("iolk", OURS, strict=True))]
    torch.testing.assert_close(found, torch.nn.functional.conv1d(x, w, b, padding=padding), rtol=1e-4, atol=1e-4)


def test_other_convolutions_go_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ran(monkeypatch)
    x, w, b = layer(8, 4, 12, 3, batch=3)
    for how in ({"padding": 1}, {"stride": 2}, {"dilation": 2}):
        assert torch.equal(conv1d(x, w, b, **how), torch.nn.functional.conv1d(x, w, b, **how))
    assert sizes == []


def test_wrong_inputs_raise_what_pytorch_raises() -> None:
    x, w, b = layer(8, 4, 12, 3)
    for wrong in ((x[:, :5], w, b), (x, w[0], b), (x, w, b[:2]), (x.double(), w, b), (x[0, 0], w, b)):
        with pytest.raises(RuntimeError) as theirs:
            torch.nn.functional.conv1d(*wrong, padding=1)
        with pytest.raises(RuntimeError) as ours:
            conv1d(*wrong, padding=1)
        assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


@pytest.mark.parametrize("padding", [(OURS[3] // 2,), [OURS[3] // 2], "same"])
def test_our_kernel_runs_however_its_numbers_are_written(
    padding: str | tuple[int] | list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w, b = layer(*OURS)
    sizes, how = ran(monkeypatch), {"stride": (1,), "padding": padding, "dilation": [1]}
    found = conv1d(x, w, b, **how)
    assert sizes == [dict(zip("iolk", OURS, strict=True))]
    torch.testing.assert_close(found, torch.nn.functional.conv1d(x, w, b, **how), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(
    ("taps", "how"),
    [
        (3, {"padding": "valid"}),
        (3, {"stride": (2,), "padding": "valid"}),
        (3, {"stride": (2,), "padding": [1], "dilation": (2,)}),
        (3, {"padding": "same", "dilation": (2,)}),
        (4, {"padding": "same"}),
    ],
)
def test_other_forms_of_stride_and_padding_give_what_pytorch_gives(
    taps: int, how: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = ran(monkeypatch)
    mine, theirs = layer(8, 4, 12, taps, grad=True), layer(8, 4, 12, taps, grad=True)
    found, expected = conv1d(*mine, **how), torch.nn.functional.conv1d(*theirs, **how)
    assert torch.equal(found, expected) and sizes == []
    for y in (found, expected):
        y.square().sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize(
    "how",
    [
        {"padding": "full"},
        {"padding": "same", "stride": 2},
        {"padding": "same", "dilation": 0},
        {"stride": (1, 2)},
        {"padding": ()},
        {"padding": ("same",)},
        {"stride": 1.0},
        {"stride": True},
        {"padding": None},
        {"groups": (1,)},
        {"groups": 2},
        {"stride": 0},
        {"padding": -1},
    ],
)
def test_wrong_arguments_raise_what_pytorch_raises(how: dict) -> None:
    x, w, b = layer(8, 5, 12, 3)
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        torch.nn.functional.conv1d(x, w, b, **how)
    with pytest.raises(theirs.type) as ours:
        conv1d(x, w, b, **how)
    # A TypeError goes on with what it got, where arguments given by position have no names.
    mine, yours = (str(each.value).splitlines()[0].split(" - got")[0] for each in (ours, theirs))
    assert mine == yours


def test_what_is_no_tensor_raises_what_pytorch_raises() -> None:
    x, w, b = layer(8, 4, 12, 3)
    for wrong in ((None, w, b), (x, None, b), (x, w, 1.0), (x.tolist(), w)):
        for function in (torch.nn.functional.conv1d, conv1d):
            with pytest.raises(TypeError, match="invalid combination of arguments"):
                function(*wrong)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("batch", [1, 3])
def test_autocast_casts_as_pytorch_does(dtype: torch.dtype, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, padding = ran(monkeypatch), OURS[3] // 2
    mine, theirs = (layer(*OURS, batch=batch, grad=True) for _ in range(2))
    with torch.autocast(DEVICE, dtype=dtype):
        found, expected = conv1d(*mine, padding=padding), torch.nn.functional.conv1d(*theirs, padding=padding)
        assert found.dtype == expected.dtype == dtype and torch.equal(found, expected) and sizes == []
    for y in (found, expected):
        y.float().sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        assert one.grad.dtype == torch.float32
        torch.testing.assert_close(one.grad, other.grad)


def test_autocast_of_another_device_or_switched_off_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, padding = ran(monkeypatch), OURS[3] // 2
    x, w, b = layer(*OURS)
    with torch.autocast(DEVICE), torch.autocast(DEVICE, enabled=False):
        assert conv1d(x, w, b, padding=padding).dtype == torch.float32
    if DEVICE == "cuda":
        with torch.autocast("cpu"):
            assert conv1d(x, w, b, padding=padding).dtype == torch.float32
    assert len(sizes) == 1 + (DEVICE == "cuda")


def test_complex_numbers_have_pytorchs_gradients() -> None:
    tensors = [each.detach().to(torch.complex64).requires_grad_() for each in layer(3, 2, 7, 3)]
    conv1d(*tensors, padding="same").abs().sum().backward()
    assert all(each.grad.is_complex() for each in tensors)


def test_registration_is_complete() -> None:
    padding = OURS[3] // 2
    x, w, b = layer(*OURS, grad=True)
    for bias in (b, None):
        torch.library.opcheck(torch.ops.climb.conv1d.default, (x, w, bias, 1, padding, 1, 1))
    torch.library.opcheck(torch.ops.climb.conv1d.default, (*layer(8, 4, 12, 3, batch=2, grad=True), 2, 1, 1, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2, 256, 16, 5), (512, 512, 8, 5), (1024, 1024, 4, 5)])
def test_registration_and_gradients_of_layers_that_run_on_a_gpu(
    shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    padding, sizes = shape[3] // 2, ran(monkeypatch)
    mine, theirs = layer(*shape, grad=True), layer(*shape, grad=True)
    torch.library.opcheck(torch.ops.climb.conv1d.default, (*mine, 1, padding, 1, 1))
    for (x, w, b), function in ((mine, conv1d), (theirs, torch.nn.functional.conv1d)):
        function(x, w, b, padding=padding).square().sum().backward()
    assert sizes and all(size == dict(zip("iolk", shape, strict=True)) for size in sizes)
    for one, other in zip(mine, theirs, strict=True):
        error = (one.grad - other.grad).abs().max() / other.grad.abs().max()
        assert error <= 1e-4, f"{error:.1e} of the largest gradient"


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_gradients_are_those_of_finite_differences(stride: int, dilation: int) -> None:
    """In float64, whose products PyTorch computes: what is checked is the operator's own rule for gradients."""
    tensors = [each.double().detach().requires_grad_() for each in layer(3, 2, 7, 3, batch=2)]
    assert torch.autograd.gradcheck(lambda x, w, b: conv1d(x, w, b, stride, 1, dilation), tensors)


@pytest.mark.parametrize("batched", [True, False])
def test_gradients_are_those_of_pytorch(batched: bool) -> None:
    padding = OURS[3] // 2
    mine, theirs = layer(*OURS, grad=True), layer(*OURS, grad=True)
    for tensors, function in ((mine, conv1d), (theirs, torch.nn.functional.conv1d)):
        x, w, b = tensors
        function(x if batched else x[0], w, b, padding=padding).square().sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("padding", [OURS[3] // 2, "same", (OURS[3] // 2,)])
def test_compiles_without_a_graph_break(padding: int | str | tuple[int]) -> None:
    x, w, b = layer(*OURS)

    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mish(conv1d(x, w, b, padding=padding)) + 1

    # The backend that runs the traced graph as it is: no compiler is needed.
    found = torch.compile(block, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, block(x))
    with torch.autocast(DEVICE):
        assert conv1d(x, w, b, padding=padding).dtype != torch.float32
        cast = torch.compile(block, fullgraph=True, backend="aot_eager")(x)
        assert cast.dtype == block(x).dtype


@pytest.mark.skipif(DEVICE == "cpu", reason="a CUDA graph needs a GPU")
def test_capture_into_a_cuda_graph_replays_on_new_values() -> None:
    padding = OURS[3] // 2
    x, w, b = layer(*OURS)
    conv1d(x, w, b, padding=padding)  # compiles and loads the kernel
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = conv1d(x, w, b, padding=padding)
    x.mul_(2)
    graph.replay()
    torch.testing.assert_close(y, torch.nn.functional.conv1d(x, w, b, padding=padding), rtol=1e-4, atol=1e-4)

"""The network's layers, its parameters, and the programs that are made from them."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import numpy as np
import pytest

from climb import count_kernel, poisoned
from climb.bench.problem import PeerUnavailable
from kernels.a_network.unet import NARROW, ladder, unet
from kernels.a_network.unet.network import mish, network, reference
from kernels.conv1d.conv1d.problem import UNET_COUNTS

#: Rungs whose launches are one graph and may start early.
EARLY = ("dependent", "persistent", "output_stationary", "in_registers")


def test_convolutions_are_those_of_the_ladder_conv1d_and_four_that_change_the_length() -> None:
    found: dict[tuple[int, ...], int] = {}
    for conv in network(256).convolutions:
        if conv.kind == "same":
            key = conv.i, conv.o, conv.length, conv.taps
            found[key] = found.get(key, 0) + 1
    assert found == {(s["i"], s["o"], s["l"], s["k"]): count for s, count in UNET_COUNTS}
    assert [c.kind for c in network(256).convolutions if c.kind != "same"] == ["down", "down", "up", "up"]


def test_products_leave_out_those_with_zeros_beyond_the_row() -> None:
    for conv in network(32).convolutions:
        outputs, taps, reach = range(conv.length_out), range(conv.taps), conv.taps // 2
        if conv.kind == "up":  # tap t takes position p to 2 p + t - 1
            terms = sum(2 * p + t - 1 in outputs for p in range(conv.length) for t in taps)
        else:
            terms = sum(conv.stride * q + t - reach in range(conv.length) for q in outputs for t in taps)
        assert conv.products == conv.i * conv.o * terms, conv


def test_tensors_fill_the_flat_array_and_do_not_overlap() -> None:
    net = network(32)
    ends = [0]
    for tensor in net.tensors.values():
        assert tensor.offset % 32 == 0 and 0 <= tensor.offset - ends[-1] < 32
        ends.append(tensor.offset + tensor.size)
    assert 0 <= net.size - ends[-1] < 32 and net.parameters < net.size


def test_reference_treats_samples_alone() -> None:
    inputs = ladder.inputs(unet(3, 32))
    names = "parameters", "sample", "timestep", "observation"
    together = reference(32, *(inputs[name] for name in names))
    second = reference(32, inputs["parameters"], *(inputs[name][1:2] for name in names[1:]))
    np.testing.assert_allclose(together[1:2], second, rtol=1e-12)


def test_mish_is_right_where_exp_overflows() -> None:
    assert mish(np.array([800.0]))[0] == 800.0 and abs(mish(np.array([-800.0]))[0]) < 1e-300
    assert mish(np.array([1.0]))[0] == pytest.approx(0.8650983882673103)


@pytest.mark.parametrize(
    ("rung", "launches"),
    [
        ("per_operation", 131),
        ("fused", 32),
        ("dependent", 32),
        ("persistent", 2),
        ("output_stationary", 2),
        ("in_registers", 2),
    ],
)
def test_launches_of_the_whole_network(rung: str, launches: int) -> None:
    found = ladder[rung].launches(unet(1))
    assert len(found) == launches
    assert [launch.graph for launch in found] == [rung in EARLY] * launches
    assert [launch.pdl for launch in found[1:]] == [rung in EARLY] * (launches - 1)


def test_widths_and_batches_that_no_rung_takes_are_refused() -> None:
    assert ladder["fused"].rung.requires({"batch": 1, "width": 48}) == "width is a multiple of 32, up to 256"
    assert ladder["fused"].rung.requires({"batch": 2000, "width": 32}) == "batch is at most 1024"
    assert ladder["persistent"].rung.requires({"batch": 2, "width": 32}) == "batch is 1"
    assert ladder["output_stationary"].rung.requires({"batch": 2, "width": 32}) == "batch is 1"
    assert ladder["output_stationary"].rung.requires({"batch": 1, "width": 96}) == "width is a power of two"


def test_second_layer_of_the_time_step_is_right_with_more_inputs_than_threads() -> None:
    """The checks are too narrow for a second round of its loop. At this width only a single kernel is quick."""
    width = 96
    launch = ladder["fused"].launches(unet(1, width))[1]
    assert launch.kernel == f"unet_embedded<{width}>" and 4 * width > launch.block[0]
    rng = np.random.default_rng(0)
    hidden, bias = rng.standard_normal(4 * width, np.float32), rng.standard_normal(width, np.float32)
    weight = rng.standard_normal((width, 4 * width), np.float32)
    parameters, activations = np.append(weight, bias), np.append(hidden, poisoned((width,), "float32"))
    offsets = [np.int32(offset) for offset in (0, 0, weight.size, hidden.size)]
    source, options = ladder["fused"].source, ("-std=c++17", f"-I{ladder.folder}")
    args = [parameters, activations, *offsets]
    count_kernel(source, launch.kernel, launch.grid, launch.block, args, options=options)
    np.testing.assert_allclose(activations[4 * width :], weight @ mish(hidden) + bias, rtol=1e-4, atol=1e-4)


def test_pytorch_computes_the_same() -> None:
    torch = pytest.importorskip("torch")
    from kernels.a_network.unet.torch_network import as_product, forward, parameters_of

    inputs = ladder.inputs(unet(2, 32))
    expected = ladder.problem.reference(inputs, unet(2, 32))["noise"]
    given = {name: torch.from_numpy(value) for name, value in inputs.items()}
    p = parameters_of(32, given["parameters"])
    for convolve in (None, as_product):
        found = forward(32, p, given["sample"], given["timestep"], given["observation"], convolve)
        assert np.abs(found.numpy() - expected).max() <= ladder.problem.tolerance(unet(2, 32)) * np.abs(expected).max()


@pytest.mark.emulated
def test_the_operator_in_pytorchs_network_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import climb.torch.operator
    from climb.torch import dispatch
    from kernels.a_network.unet import peers

    sizes: list[dict[str, int]] = []
    monkeypatch.setattr(
        climb.torch.operator, "prepared", lambda size, arrays: (sizes.append(size), dispatch.prepared(size, arrays))[1]
    )
    monkeypatch.setattr(peers, "_settings", lambda tried, tf32: nullcontext())
    monkeypatch.setattr(peers, "captured", lambda function, target: lambda: target.copy_(function()))
    inputs = ladder.inputs(unet(1, NARROW))
    given = {name: torch.from_numpy(value) for name, value in inputs.items()}
    noise = torch.empty((1, 16, 2))
    (ours,) = (peer for peer in ladder.peers if peer.name == peers.OURS)
    ours.prepare({**given, "noise": noise}, unet(1, NARROW))()
    expected = ladder.problem.reference(inputs, unet(1, NARROW))["noise"]
    assert np.abs(noise.numpy() - expected).max() <= ladder.problem.tolerance(unet(1, NARROW)) * np.abs(expected).max()
    # All but those that the emulator would take too long for, and the first, whose input is a transposed view.
    assert len(sizes) > 10 and {"i": 32, "o": 2, "l": 16, "k": 1} in sizes


def test_the_operators_peer_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from climb.bench.libraries.description import prepared
    from kernels.a_network.unet import peers

    monkeypatch.setitem(sys.modules, "climb.torch.operator", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    (ours,) = (peer for peer in ladder.peers if peer.name == peers.OURS)
    with pytest.raises(PeerUnavailable, match="is not installed or cannot be loaded; make gpu installs it"):
        prepared(ours, {}, unet(1, NARROW))

"""Training and inference of language models: llm.c and llama.cpp."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator

llm_c = Project("karpathy/llm.c", "llm_c")


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x: np.ndarray, eps: float) -> np.ndarray:
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


@llm_c("llmc/encoder.cuh")
def encoder(rng: Random) -> Steps:
    token, wte, wpe, out = integers(rng, 0, 50, 21), floats(rng, 50, 24), floats(rng, 7, 24), empty(21, 24)
    expected = wte[token] + wpe[np.arange(21) % 7]
    return Steps([launch("encoder", 2, 64, token, wte, wpe, out, 21, 7, 6)], [exact(out, expected)])


@llm_c("dev/cuda/layernorm_forward.cu", {1: OutOfBounds})
def layernorm_rows(rng: Random) -> Steps:
    x, w, b = floats(rng, 7, 70), floats(rng, 70), floats(rng, 70)
    y, mean, rstd = empty(7, 70), empty(7), empty(7)
    return Steps(
        [launch("layernorm_rows", 2, 128, x, w, b, y, mean, rstd, 7, 70)],
        [close(y, normalised(x, 1e-5) * w + b), close(mean, x.mean(1)), close(rstd, 1 / np.sqrt(x.var(1) + 1e-5))],
    )


@llm_c("dev/cuda/layernorm_backward.cu", {2: (Race, Uninitialised)})
def layernorm_weights(rng: Random) -> Steps:
    dy, x, mean, rstd = floats(rng, 30, 45), floats(rng, 30, 45), floats(rng, 30), floats(rng, 30)
    dw, db = floats(rng, 45), floats(rng, 45)
    new_w, new_b = dw + (dy * (x - mean[:, None]) * rstd[:, None]).sum(0), db + dy.sum(0)
    return Steps(
        [launch("layernorm_weights", 2, (32, 8), dy, x, mean, rstd, dw, db, 30, 45)],
        [close(dw, new_w, 1e-4), close(db, new_b, 1e-4)],
    )


@llm_c("llmc/gelu.cuh")
def gelu(rng: Random) -> Steps:
    x, y = floats(rng, 300) * 3, empty(300)
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return Steps([launch("gelu", 3, 128, x, y, 300)], [close(y, expected)])


@llm_c("dev/cuda/softmax_forward.cu", {3: WRONG})
def softmax_causal(rng: Random) -> Steps:
    x, p = floats(rng, 2, 40, 40), empty(2, 40, 40)
    masked = np.where(np.tri(40, dtype=bool), np.float32(0.3) * x, -np.inf)
    return Steps([launch("softmax_causal", 20, 128, x, p, 80, 40, 0.3)], [close(p, softmax(masked))])


@llm_c("llmc/fused_classifier.cuh", {4: Race})
def fused_classifier(rng: Random) -> Steps:
    logits, target, loss = floats(rng, 5, 320), integers(rng, 0, 307, 5), empty(5)
    p, expected = softmax(logits[:, :307]), logits.copy()
    expected[:, :307] = p - (np.arange(307) == target[:, None])
    return Steps(
        [launch("fused_classifier", 5, 128, logits, loss, target, 307, 320)],
        [close(loss, -np.log(p[np.arange(5), target])), close(logits, expected)],
    )


@llm_c("llmc/adamw.cuh")
def adamw(rng: Random) -> Steps:
    w, g, m, v = floats(rng, 200), floats(rng, 200), floats(rng, 200), floats(rng, 200) ** 2
    new_m, new_v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
    new_w = w - 0.01 * (new_m / 0.19 / (np.sqrt(new_v / 0.1) + 1e-8) + 0.1 * w)
    args = (w, g, m, v, 200, 0.01, 0.9, 0.95, 0.19, 0.1, 1e-8, 0.1)
    return Steps([launch("adamw", 2, 128, *args)], [close(m, new_m), close(v, new_v), close(w, new_w)])


@llm_c("llmc/global_norm.cuh", {5: Uninitialised})
def squared_norm(rng: Random) -> Steps:
    g, partial = floats(rng, 1000), empty(3)
    block = np.arange(1000) // 128 % 3
    return Steps(
        [launch("squared_norm", 3, 128, g, partial, 1000)],
        [close(partial, np.bincount(block, g.astype(np.float64) ** 2), 1e-3)],
    )


llama_cpp = Project("ggml-org/llama.cpp", "llama_cpp")
Q8 = np.dtype([("d", np.float32), ("q", np.int8, 32)])
Q4 = np.dtype([("d", np.float32), ("q", np.uint8, 16)])
Q4_1 = np.dtype([("d", np.float32), ("m", np.float32), ("q", np.uint8, 16)])


def quantised(rng: Random, kind: np.dtype, *shape: int) -> np.ndarray:
    """Random blocks of 32 weights."""
    blocks = np.zeros(shape, kind)
    for name in kind.names:
        field = blocks[name]
        whole = field.dtype.kind in "iu"
        field[...] = (
            rng.integers(0, 256, field.shape).astype(np.uint8).view(field.dtype) if whole else rng.random(shape)
        )
    return blocks


def nibbles(q: np.ndarray) -> np.ndarray:
    return np.concatenate([q & 15, q >> 4], -1).astype(np.float64)


@llama_cpp("quantize.cu", {1: OutOfBounds})
def quantize_q8(rng: Random) -> Steps:
    x, y = floats(rng, 8, 32), empty(8 * 36, dtype=np.uint8)
    x[2] = 0
    blocks = np.zeros(8, Q8)
    blocks["d"] = np.abs(x).max(1) / np.float32(127)
    scaled = x / np.where(blocks["d"], blocks["d"], 1)[:, None]
    blocks["q"] = np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))
    return Steps([launch("quantize_q8", 2, 128, x, y, 256)], [exact(y, blocks.view(np.uint8))])


@llama_cpp("dequantize.cuh", {2: (Race, WRONG)})
def dequantize_q4(rng: Random) -> Steps:
    x, y = quantised(rng, Q4, 19), empty(19, 32)
    expected = (nibbles(x["q"]) - 8) * x["d"][:, None]
    return Steps([launch("dequantize_q4", 3, 128, x.view(np.uint8), y, 19)], [close(y, expected)])


@llama_cpp("convert.cu")
def dequantize_q4_1(rng: Random) -> Steps:
    x, y = quantised(rng, Q4_1, 19), empty(19, 32)
    expected = nibbles(x["q"]) * x["d"][:, None] + x["m"][:, None]
    return Steps([launch("dequantize_q4_1", 3, 128, x.view(np.uint8), y, 19 * 16)], [close(y, expected)])


@llama_cpp("mmvq.cu, vecdotq.cuh", {3: (Race, Uninitialised)})
def matvec_q4_q8(rng: Random) -> Steps:
    w, x, y = quantised(rng, Q4, 6, 40), quantised(rng, Q8, 40), empty(6)
    weights = (nibbles(w["q"]) - 8) * w["d"][..., None]
    expected = (weights * (x["q"] * x["d"][:, None].astype(np.float64))).sum((1, 2))
    args = (w.view(np.uint8), x.view(np.uint8), y, 40)
    return Steps([launch("matvec_q4_q8", 6, 128, *args)], [close(y, expected, 1e-1, 1e-4)])


@llama_cpp("norm.cu", {4: (OutOfBounds, Uninitialised)})
def rms_norm(rng: Random) -> Steps:
    x, y = floats(rng, 4, 150), empty(4, 150)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
    return Steps([launch("rms_norm", 4, 64, x, y, 150, 1e-5, shared=8)], [close(y, expected)])


def _rope(rng: Random, kernel: str, neox: bool) -> Steps:
    x, position, y = floats(rng, 6, 40), integers(rng, 0, 90, 6), empty(6, 40)
    k, expected = np.arange(16), x.astype(np.float64)
    angle = position[:, None] * 10000.0 ** (-2 * k / 32)
    a, b = (k, k + 16) if neox else (2 * k, 2 * k + 1)
    expected[:, a] = x[:, a] * np.cos(angle) - x[:, b] * np.sin(angle)
    expected[:, b] = x[:, a] * np.sin(angle) + x[:, b] * np.cos(angle)
    return Steps([launch(kernel, (1, 6), 32, x, position, y, 40, 32)], [close(y, expected, 1e-4)])


@llama_cpp("rope.cu")
def rope_norm(rng: Random) -> Steps:
    return _rope(rng, "rope_norm", neox=False)


@llama_cpp("rope.cu")
def rope_neox(rng: Random) -> Steps:
    return _rope(rng, "rope_neox", neox=True)


@llama_cpp("softmax.cu", {5: Race})
def soft_max_alibi(rng: Random) -> Steps:
    x, mask, y = floats(rng, 2, 3, 90), floats(rng, 3, 90), empty(2, 3, 90)
    expected = softmax(x * np.float32(0.4) + 0.5 ** np.arange(1, 3)[:, None, None] * mask)
    args = (x, mask, y, 90, 0.4, 0.5, 2)
    return Steps([launch("soft_max_alibi", (3, 2), 64, *args, shared=360)], [close(y, expected)])


@llama_cpp("getrows.cu")
def get_rows_q8(rng: Random) -> Steps:
    x, rows, y = quantised(rng, Q8, 9, 3), integers(rng, 0, 9, 5), empty(5, 96)
    expected = (x["q"] * x["d"][..., None]).reshape(9, 96)[rows]
    return Steps([launch("get_rows_q8", (2, 5), 64, x.view(np.uint8), rows, y, 96)], [close(y, expected)])


@llama_cpp("argsort.cu", {6: Race})
def argsort(rng: Random) -> Steps:
    x, out = floats(rng, 3, 50), empty(3, 50, dtype=np.int32)
    return Steps([launch("argsort", 3, 64, x, out, 50, 64, shared=256)], [exact(out, np.argsort(x, 1))])


@llama_cpp("im2col.cu", {7: (OutOfBounds, WRONG)})
def im2col(rng: Random) -> Steps:
    x, y = floats(rng, 2, 6, 7), empty(42, 18)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    expected = windows.transpose(1, 2, 0, 3, 4).reshape(42, 18)
    return Steps([launch("im2col", 6, 128, x, y, 2, 6, 7, 3)], [exact(y, expected)])


@llama_cpp("unary.cu")
def swiglu(rng: Random) -> Steps:
    x, y = floats(rng, 3, 140), empty(3, 70)
    a, b = x[:, :70], x[:, 70:]
    return Steps([launch("swiglu", 2, 128, x, y, 3, 70)], [close(y, a / (1 + np.exp(-a)) * b)])


@llama_cpp("norm.cu", {8: Race})
def group_norm(rng: Random) -> Steps:
    x, y = floats(rng, 4, 150), empty(4, 150)
    return Steps([launch("group_norm", 4, 64, x, y, 150, 600)], [close(y, normalised(x, 1e-6))])

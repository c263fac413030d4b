"""The vendors' published numbers for their GPUs, each with its source; predictions are made from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSheet:
    """The highest rates of a GPU, as its vendor gives them.

    ``bandwidth_gb_s`` is that of device memory, ``fp32_tflop_s`` counts a multiply-add of float32 outside tensor cores
    as two operations, ``l2_mb`` is the size of the L2 cache. ``folder`` is the GPU's folder of records. ``source``
    names the documents that state the numbers.
    """

    name: str
    folder: str
    capability: str
    bandwidth_gb_s: float
    fp32_tflop_s: float
    sms: int
    l2_mb: float
    source: str


SHEETS = (
    DataSheet(
        "H200 SXM", "nvidia-h200", "90", 4800, 67, 132, 60,
        "NVIDIA H200 Tensor Core GPU data sheet; NVIDIA H100 Tensor Core GPU Architecture (SMs); its driver (L2)",
    ),
    DataSheet(
        "H100 SXM 80GB", "nvidia-h100-80gb-hbm3", "90", 3350, 67, 132, 50,
        "NVIDIA H100 Tensor Core GPU data sheet; NVIDIA H100 Tensor Core GPU Architecture",
    ),
    DataSheet(
        "A100 SXM 80GB", "nvidia-a100-sxm4-80gb", "80", 2039, 19.5, 108, 40,
        "NVIDIA A100 Tensor Core GPU data sheet; NVIDIA A100 Tensor Core GPU Architecture",
    ),
    DataSheet(
        "GeForce RTX 4090", "nvidia-geforce-rtx-4090", "89", 1008, 82.6, 128, 72,
        "NVIDIA Ada GPU Architecture, appendix A",
    ),
    DataSheet(
        "B200", "nvidia-b200", "100", 8000, 75, 148, 126,
        "NVIDIA DGX B200 data sheet (memory of eight GPUs); NVIDIA HGX platform, specifications (FP32 of eight GPUs); "
        "NVIDIA Blackwell Tuning Guide",
    ),
)  # fmt: skip


def sheet_of(folder: str) -> DataSheet:
    """Return the data sheet of a folder of records. Raises LookupError naming those that exist."""
    for sheet in SHEETS:
        if sheet.folder == folder:
            return sheet
    raise LookupError(f"no data sheet of {folder}; there are {', '.join(one.folder for one in SHEETS)}")

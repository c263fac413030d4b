"""The book's one-dimensional convolution as an operator of PyTorch: ``from climb.torch import conv1d``.

PyTorch is imported with the operator (``climb.torch.operator``); the rule that says what it takes
(``climb.torch.dispatch``) needs none.
"""

from __future__ import annotations

from typing import Any

__all__ = ["conv1d"]


def __getattr__(name: str) -> Any:
    if name != "conv1d":
        raise AttributeError(f"climb.torch has no '{name}'; it has conv1d")
    from climb.torch.operator import conv1d

    return conv1d

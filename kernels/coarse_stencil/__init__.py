"""The chapter on coarsening, a 2D stencil with 1, 2, 4, ... outputs a thread. The ladder is in ``sweep``.

The book counts what these kernels do and quotes no times of them. So no record is kept, and the ladder is not among
those that ``ladder_names()`` finds; ``load_ladder("kernels.coarse_stencil.sweep")`` has it, and so has
``python -m kernels.lab.record kernels.coarse_stencil.sweep`` on a GPU.
"""

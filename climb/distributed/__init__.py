"""Problems that several GPUs solve together: ladders whose rungs are plans, run by NCCL or by its stand-in.

A *plan* lists one rank's work at one size: kernels, messages, and the waits between streams. It is a value that any
process can compute for all ranks, so that :mod:`~climb.distributed.agreement` finds messages without a counterpart
before the first one is sent. :mod:`~climb.distributed.execution` carries a plan out through ``cp.cuda.nccl``, which is
NCCL where ranks are processes with a GPU each, and the stand-in where they are threads of one process without a GPU.
"""

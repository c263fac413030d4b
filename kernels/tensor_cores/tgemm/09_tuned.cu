// Idea: the tensor cores never wait: A's parts come from memory, consumers take turns.
// From the rung before: fragments of A by ldmatrix, promotion every 64 of k; one of two
// warpgroups multiplies while the other adds up; C through the copy engine; a product
// of few tiles is cut along k.
// Requires: sm_90a.
#include "one_pass.cuh"
#include "split_rows.cuh"
#include "tuned.cuh"
#include "two_passes.cuh"

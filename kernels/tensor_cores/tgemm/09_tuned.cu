// Idea: the tensor cores never wait: A's parts come from memory, consumers take turns.
// From the rung before: ldmatrix loads fragments of A; promotion every 64 of k; one of
// two warpgroups multiplies while the other adds up; the copy engine stores C; products
// of few tiles are split along k.
// Requires: sm_90a.
#include "one_pass.cuh"
#include "split_rows.cuh"
#include "tuned.cuh"
#include "two_passes.cuh"

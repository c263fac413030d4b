// Idea: where narrower tiles fill the rounds better, use tiles of 128 x 192.
// From the rung before: large products use the width that needs less time for all its
// rounds. All sums of a narrower tile are stored while the next one is multiplied.
// Requires: what hgemm_balanced requires; for tiles of 128 x 192, boxes of B with 32
// rows.
#include "narrow.cuh"

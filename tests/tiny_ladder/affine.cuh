#pragma once
__device__ inline float affine(float x) { return 2.0f * x + 1.0f; }

// Idea: pieces of 16 bytes hold four floats, rounded to TF32, instead of eight halves.
// From the rung before: this is the first rung: halves of the ladder convlayer_tensor
// with one product. The first launch rounds floats; a step has 8 input maps, not 16, so
// there are twice as many steps of the same number of bytes.
// Requires: sm_90a. First launch: blocks of kBlock threads; tap_blocks blocks for the
// weights, one warp per step and 8 output maps, then blocks for all pixels, steps and
// images; kWidth = 4 where c_in is a multiple of 4 and weights are aligned to 16 bytes,
// kWidth = 1 otherwise. Other launches: as halves, for twice as many input maps of half
// the bytes.
#include "../../common/hopper/wgmma.cuh"
// The later launches move pieces of 16 bytes; only their products depend on the type of
// the elements.
#define wgmma_f16 wgmma_tf32
#include "../convlayer_tensor/03_halves.cu"

constexpr int kStepMaps = 8;  // input maps per step: two fours

__device__ __forceinline__ unsigned to_tf32(float value)
{
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}

// One warp makes the fours of the weights of 8 output maps for one step.
template <int kBlock, int kWidth>
__device__ __forceinline__ void taps_to_fours(const float* __restrict__ weights,
                                              Taps<1>* __restrict__ taps, int c_in,
                                              int c_out, int unit)
{
    constexpr int kRow = kStepMaps * kTaps;  // weights per output map and step
    // Weights of 8 output maps x 4 input maps cover all banks.
    constexpr int kPitch = kRow + 4;
    constexpr int kOctets = kOuts / kOutsAtOnce;
    __shared__ __align__(16) float shared[kBlock / kWarp][kOutsAtOnce * kPitch];
    const int steps = (c_in + kStepMaps - 1) / kStepMaps;
    const int octet = unit / steps;
    const int step = unit % steps;
    if (octet >= (c_out + kOuts - 1) / kOuts * kOctets) return;
    const int lane = threadIdx.x % kWarp;
    const int out = octet * kOutsAtOnce + lane / 4;
    float* row = shared[threadIdx.x / kWarp] + lane / 4 * kPitch;
    const float* from = weights + static_cast<size_t>(out) * c_in * kTaps + step * kRow;
    const int number = out < c_out ? c_in * kTaps - step * kRow : 0;
    for (int at = lane % 4 * kWidth; at < kRow; at += 4 * kWidth) {
        const bool inside = at < number;
        copy_async<kWidth>(row + at, inside ? from + at : weights, inside);
    }
    wait_for_copies();
    __syncwarp();  // the warp's weights have arrived
    // For each tap, a lane has one output map and input maps lane % 4 and lane % 4 + 4.
    Taps<1>& to = taps[octet / kOctets * steps + step];
#pragma unroll
    for (int four = 0; four < kEights; ++four) {
        unsigned* first =
            reinterpret_cast<unsigned*>(to.eights[octet % kOctets][four]) + lane;
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
            first[tap * kWarp] = to_tf32(row[(four * 4 + lane % 4) * kTaps + tap]);
        }
    }
}

// Makes fours of pixels, one plane per image and four input maps, and fours of weights
// in the order of the ring.
template <int kBlock, int kWidth>
__global__ void __launch_bounds__(kBlock)
    convlayer_to_fours(const float* __restrict__ input,
                       const float* __restrict__ weights, Eight* __restrict__ pixels,
                       Taps<1>* __restrict__ taps, int n, int c_in, int c_out,
                       int tap_blocks)
{
    start_next_launch();
    if (blockIdx.x < tap_blocks) {
        const int unit = blockIdx.x * (kBlock / kWarp) + threadIdx.x / kWarp;
        taps_to_fours<kBlock, kWidth>(weights, taps, c_in, c_out, unit);
        return;
    }
    const int steps = (c_in + kStepMaps - 1) / kStepMaps;
    const int map = n * n;
    const int across = (map + kBlock - 1) / kBlock;
    const int block = blockIdx.x - tap_blocks;
    const int pixel = block % across * kBlock + threadIdx.x;
    if (pixel >= map) return;
    const int step = block / across % steps;
    const size_t image = block / across / steps;
    const float* from = input + (image * c_in + step * kStepMaps) * map + pixel;
    unsigned value[kStepMaps];
#pragma unroll
    for (int m = 0; m < kStepMaps; ++m) {
        const bool inside = step * kStepMaps + m < c_in;
        value[m] = inside ? to_tf32(from[m * static_cast<size_t>(map)]) : 0u;
    }
    Eight* to = pixels + (image * steps + step) * kEights * map + pixel;
    to[0] = make_uint4(value[0], value[1], value[2], value[3]);
    to[map] = make_uint4(value[4], value[5], value[6], value[7]);
}

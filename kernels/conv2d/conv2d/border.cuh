// Shared by all rungs: the filter as a structure, and the pixels beyond the border of
// the image.
#pragma once

// kReflect mirrors once, which is enough if the image is larger than half the filter;
// kReflectOften works for any image.
enum Border { kZero, kClamp, kReflect, kReflectOften };

// A filter passed by value is in the constant bank, like all kernel parameters.
template <int kDown, int kAcross>
struct Filter {
    float at[kDown][kAcross];
};

// Read the weights of a filter that is a kernel parameter, each at a fixed offset, at
// the start of the kernel. volatile keeps the compiler from reading them through a
// pointer, which the emulator does not follow. In machine code, each weight becomes an
// operand in the constant bank.
template <int kDown, int kAcross>
__device__ Filter<kDown, kAcross> weights(const Filter<kDown, kAcross>& parameter)
{
    Filter<kDown, kAcross> own;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
            own.at[i][j] = *const_cast<const volatile float*>(&parameter.at[i][j]);
        }
    }
    return own;
}

// The element to read for position i of an axis of n elements. Clamp: the nearest
// element. Reflect: mirrored about the centre of the first and the last element. Zero:
// i itself; the caller checks whether it is inside.
template <Border kBorder>
__device__ int inside(int i, int n)
{
    if constexpr (kBorder == kClamp) {
        return min(max(i, 0), n - 1);
    } else if constexpr (kBorder == kReflect) {
        // No output needs positions farther out, but a tile may contain them.
        return max(n - 1 - abs(n - 1 - abs(i)), 0);
    } else if constexpr (kBorder == kReflectOften) {
        const int period = max(2 * (n - 1), 1);
        i = abs(i) % period;
        return min(i, period - i);
    } else {
        return i;
    }
}

// The pixel at this position, which may be beyond the border.
template <Border kBorder>
__device__ float pixel(
    const float* __restrict__ image, int row, int col, int rows, int cols)
{
    const int r = inside<kBorder>(row, rows), c = inside<kBorder>(col, cols);
    if (kBorder == kZero && (r < 0 || r >= rows || c < 0 || c >= cols)) {
        return 0.0f;
    }
    return image[static_cast<size_t>(r) * cols + c];
}

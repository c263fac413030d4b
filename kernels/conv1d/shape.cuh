// The division of a layer's rows into blocks.
#pragma once

constexpr int kMaxTile = 16;

// Positions per block: all of a short row, or one tile of a longer row.
constexpr int tile_of(int length)
{
    return length < kMaxTile ? length : kMaxTile;
}

// Floats of a row that the outputs of a tile depend on.
constexpr int span_of(int length, int taps)
{
    const int most = tile_of(length) + taps - 1;
    return length < most ? length : most;
}

// Padding: one unused float after every 32 floats, or after each thread's rows if those
// are longer; never inside a group of four floats that one load reads.
constexpr int pad_every(int floats)
{
    return floats < 32 ? 32 : (floats + 3) / 4 * 4;
}

// The most threads per block that leave each thread enough registers for its channels.
constexpr int most_threads(int channels)
{
    return channels > 2 ? 2048 / channels : 1024;
}

"""Hashes, ciphers, counter-based random numbers and hash tables."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from climb.emulator import OutOfBounds, Race, Uninitialised

from .program import WRONG, Project, Steps, empty, exact, integers, launch, words

Random = np.random.Generator
LOW = 2**32 - 1
u32, u64 = np.uint32, np.uint64


def rotl(x: int, n: int, bits: int = 32) -> int:
    return (x << n | x >> (bits - n)) & (2**bits - 1)


def finish(h: int, first: int, second: int, shifts: tuple[int, int, int]) -> int:
    h = (h ^ h >> shifts[0]) * first & LOW
    h = (h ^ h >> shifts[1]) * second & LOW
    return h ^ h >> shifts[2]


@Project("aappleby/smhasher", "hashes")("src/MurmurHash3.cpp")
def murmur3(rng: Random) -> Steps:
    data, out, expected = words(rng, 40, 5), empty(40, dtype=u32), []
    for row in data.tolist():
        h = 99
        for word in row:
            h = rotl(h ^ rotl(word * 0xCC9E2D51 & LOW, 15) * 0x1B873593 & LOW, 13) * 5 + 0xE6546B64 & LOW
        expected.append(finish(h ^ 20, 0x85EBCA6B, 0xC2B2AE35, (16, 13, 16)))
    return Steps([launch("murmur3", 2, 32, data, out, 40, 5, u32(99))], [exact(out, np.array(expected, u32))])


@Project("Cyan4973/xxHash", "hashes")("xxhash.h", {1: OutOfBounds})
def xxhash32(rng: Random) -> Steps:
    p1, p2, p3, p4 = 2654435761, 2246822519, 3266489917, 668265263
    data, out, expected = words(rng, 40, 10), empty(40, dtype=u32), []
    for row in data.tolist():
        v = [5 + p1 + p2, 5 + p2, 5, 5 - p1]
        for k in range(8):
            v[k % 4] = rotl(v[k % 4] + row[k] * p2 & LOW, 13) * p1
        h = sum(rotl(each & LOW, n) for each, n in zip(v, (1, 7, 12, 18), strict=True)) + 40
        for word in row[8:]:
            h = rotl(h + word * p3 & LOW, 17) * p4 & LOW
        expected.append(finish(h & LOW, p2, p3, (15, 13, 16)))
    return Steps([launch("xxhash32", 2, 32, data, out, 40, 10, u32(5))], [exact(out, np.array(expected, u32))])


@Project("hashcat/hashcat", "hashes")("OpenCL/inc_hash_sha256.cl")
def sha256(rng: Random) -> Steps:
    messages = [rng.bytes(int(size)) for size in rng.integers(0, 56, 40)]
    padded = b"".join(m + b"\x80" + bytes(55 - len(m)) + (8 * len(m)).to_bytes(8, "big") for m in messages)
    expected = b"".join(hashlib.sha256(m).digest() for m in messages)
    blocks, out = np.frombuffer(padded, u32).copy(), empty(40, 8, dtype=u32)
    return Steps([launch("sha256", 2, 32, blocks, out, 40)], [exact(out, np.frombuffer(expected, u32))])


@Project("madler/zlib", "hashes")("crc32.c", {2: (Race, Uninitialised)})
def crc32(rng: Random) -> Steps:
    data, out = integers(rng, 0, 256, 40, 9, dtype=np.uint8), empty(40, dtype=u32)
    expected = np.array([zlib.crc32(row.tobytes()) for row in data], u32)
    return Steps([launch("crc32", 1, 64, data, out, 40, 9)], [exact(out, expected)])


def siphash_of(words_: list[int], k0: int, k1: int) -> int:
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    for m in [*words_, len(words_) * 8 << 56, None]:
        if m is None:
            c ^= 0xFF
        else:
            d ^= m
        for _ in range(4 if m is None else 2):
            a = a + b & 2**64 - 1
            b, a = rotl(b, 13, 64) ^ a, rotl(a, 32, 64)
            c = c + d & 2**64 - 1
            d = rotl(d, 16, 64) ^ c
            a = a + d & 2**64 - 1
            d = rotl(d, 21, 64) ^ a
            c = c + b & 2**64 - 1
            b, c = rotl(b, 17, 64) ^ c, rotl(c, 32, 64)
        a ^= m or 0
    return a ^ b ^ c ^ d


@Project("veorq/SipHash", "hashes")("siphash.c")
def siphash(rng: Random) -> Steps:
    # The reference vector of the paper has a partial word; the one of 8 bytes is the ninth of vectors.h.
    key = [int.from_bytes(bytes(range(k, k + 8)), "little") for k in (0, 8)]
    assert siphash_of(key[:1], *key) == 0x93F5F5799A932462
    data, out = rng.integers(0, 2**64, (40, 3), u64), empty(40, dtype=u64)
    expected = np.array([siphash_of(row, 17, 2**63 + 5) for row in data.tolist()], u64)
    args = (data, out, 40, 3, u64(17), u64(2**63 + 5))
    return Steps([launch("siphash", 2, 32, *args)], [exact(out, expected)])


def chacha_block(state: list[int]) -> list[int]:
    x = list(state)
    for _ in range(10):
        for shift in range(2):
            for k in range(4):
                a, b, c, d = k, 4 + (k + shift) % 4, 8 + (k + 2 * shift) % 4, 12 + (k + 3 * shift) % 4
                for p, q, r, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    x[p] = x[p] + x[q] & LOW
                    x[r] = rotl(x[r] ^ x[p], n)
    return [a + b & LOW for a, b in zip(x, state, strict=True)]


@Project("jedisct1/libsodium", "hashes")("src/libsodium/crypto_stream/chacha20/ref/chacha20_ref.c")
def chacha20(rng: Random) -> Steps:
    key, nonce, text, out = words(rng, 8), words(rng, 3), words(rng, 40, 16), empty(40, 16, dtype=u32)
    head = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key.tolist()]
    stream = [chacha_block([*head, i + 1, *nonce.tolist()]) for i in range(40)]
    return Steps([launch("chacha20", 2, 32, key, nonce, text, out, 40)], [exact(out, text ^ np.array(stream, u32))])


random123 = Project("DEShawResearch/random123", "hashes")


def pair(a: int, b: int) -> np.void:
    return np.frombuffer(np.array([a, b], u32).tobytes(), "V8")[0]


@random123("include/Random123/philox.h")
def philox(rng: Random) -> Steps:
    out, expected = empty(70, 4, dtype=u32), []
    for i in range(70):
        x, y, z, w, k0, k1 = i, 0, 7, 0, 11, 2**31
        for _ in range(10):
            first, second = 0xD2511F53 * x, 0xCD9E8D57 * z
            x, y, z, w = second >> 32 ^ y ^ k0, second & LOW, first >> 32 ^ w ^ k1, first & LOW
            k0, k1 = k0 + 0x9E3779B9 & LOW, k1 + 0xBB67AE85 & LOW
        expected.append((x, y, z, w))
    return Steps([launch("philox", 2, 64, out, pair(11, 2**31), 70)], [exact(out, np.array(expected, u32))])


@random123("include/Random123/threefry.h")
def threefry(rng: Random) -> Steps:
    out, expected, key = empty(70, 2, dtype=u32), [], (11, 2**31, 0x1BD11BDA ^ 11 ^ 2**31)
    for i in range(70):
        x, y = i + key[0] & LOW, 3 + key[1] & LOW
        for r in range(20):
            x = x + y & LOW
            y = rotl(y, (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]) ^ x
            if r % 4 == 3:
                x, y = x + key[(r // 4 + 1) % 3] & LOW, y + key[(r // 4 + 2) % 3] + r // 4 + 1 & LOW
        expected.append((x, y))
    return Steps([launch("threefry", 2, 64, out, pair(11, 2**31), 70)], [exact(out, np.array(expected, u32))])


@Project("imneme/pcg-c", "hashes")("src/pcg-advance-64.c", {3: WRONG})
def pcg32(rng: Random) -> Steps:
    out, state, expected = empty(64, 5, dtype=u32), 42, []
    for _ in range(64 * 5):
        x, turn = (state >> 18 ^ state) >> 27 & LOW, state >> 59
        expected.append(rotl(x, (32 - turn) % 32))
        state = state * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
    return Steps([launch("pcg32", 2, 32, out, u64(42), 5)], [exact(out, np.array(expected, u32))])


@Project("NVIDIA/cuCollections", "hashes")("include/cuco/static_map.cuh", {4: OutOfBounds, 5: Race})
def hash_table(rng: Random) -> Steps:
    keys, asked = integers(rng, 0, 90, 200, dtype=u32), np.arange(100, dtype=u32)
    slots, counts, out = np.full(128, LOW, u32), np.zeros(128, u32), empty(100, dtype=u32)
    return Steps(
        [
            launch("table_insert", 4, 64, keys, slots, counts, 200, u32(127)),
            launch("table_find", 4, 32, asked, slots, counts, out, 100, u32(127)),
        ],
        [exact(out, np.bincount(keys, minlength=100))],
    )


@Project("NVIDIA/cuCollections", "hashes")("include/cuco/bloom_filter.cuh")
def bloom(rng: Random) -> Steps:
    keys, bits, expected = words(rng, 90), np.zeros(50, u32), np.zeros(50, u32)
    for key in keys.tolist():
        for h in (1, 2, 3):
            bit = (key * (2 * h + 1) & LOW ^ key >> 7 * h) % 1600
            expected[bit // 32] |= u32(1 << bit % 32)
    return Steps([launch("bloom", 3, 32, keys, bits, 90, u32(50))], [exact(bits, expected)])

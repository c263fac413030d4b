// The PTX of Hopper's copy engine, barriers and clusters, as functions.
#pragma once

using Word = unsigned long long;  // an mbarrier

struct alignas(64) TensorMap {
    Word opaque[16];
};

__device__ inline unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ inline void init(Word* bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(shared_address(bar)), "r"(count) : "memory");
}
__device__ inline void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void expect(Word* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(bar)), "r"(bytes) : "memory");
}
__device__ inline void arrive(Word* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :: "r"(shared_address(bar)) : "memory");
}
__device__ inline bool try_wait(Word* bar, unsigned parity) {
    unsigned over;
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(shared_address(bar)), "r"(parity) : "memory");
    return over;
}
__device__ inline void wait(Word* bar, unsigned parity) {
    while (!try_wait(bar, parity)) {
    }
}

__device__ inline void load(void* to, const TensorMap& from, int x, int y, Word* bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(shared_address(to)), "l"(&from), "r"(x), "r"(y),
                    "r"(shared_address(bar)) : "memory");
}
__device__ inline void load_all(void* to, const TensorMap& from, int x, int y,
                                Word* bar, unsigned short ranks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(shared_address(to)), "l"(&from), "r"(x), "r"(y),
                    "r"(shared_address(bar)), "h"(ranks) : "memory");
}
__device__ inline void store(const TensorMap& to, int x, int y, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
                 " [%0, {%1, %2}], [%3];"
                 :: "l"(&to), "r"(x), "r"(y), "r"(shared_address(from)) : "memory");
}
__device__ inline void copy_in(void* to, const void* from, int bytes, Word* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes),
                    "r"(shared_address(bar)) : "memory");
}
__device__ inline void add_out(float* to, const void* from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
                 " [%0], [%1], %2;"
                 :: "l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
}
__device__ inline void commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ inline void wait_reads() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void fence_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline unsigned at_rank(const void* p, unsigned rank) {
    unsigned out;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(out) : "r"(shared_address(p)), "r"(rank));
    return out;
}
__device__ inline void add_at(unsigned address, unsigned value) {
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;"
                 :: "r"(address), "r"(value) : "memory");
}
__device__ inline void arrive_at(unsigned bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(bar) : "memory");
}

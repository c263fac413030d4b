// How the search orders its results: the chapter about a subject first, then what has the words in its title.
// Sphinx puts this file into searchtools.js (`html_search_scorer`). Words are compared by their stems, so that
// "bank conflict" and "bank conflicts" are the same.
const SUBJECTS = {
  "book/coalescing": ["coalescing", "coalesced access", "coalesced", "sector", "stride", "memory request"],
  "book/bank-conflicts": ["bank conflict", "shared memory bank", "padding", "swizzle", "swizzling", "transpose"],
  "book/float4": ["float4", "vectorised load", "vectorized load", "vector load", "saxpy", "alignment"],
  "book/tiling": ["tiling", "tile", "halo", "shared memory tile", "stencil"],
  "book/warp-shuffles": ["warp shuffle", "shuffle", "reduction", "__shfl_down_sync", "warp reduction"],
  "book/privatization": ["privatization", "privatisation", "histogram", "histogram privatization", "atomic", "atomicAdd"],
  "book/coarsening": ["coarsening", "thread coarsening"],
  "book/occupancy": ["occupancy", "register pressure", "latency hiding", "bytes in flight"],
  "book/divergence": ["divergence", "warp divergence", "branch divergence", "reconvergence"],
  "book/light-speed": ["speed of light", "roofline", "arithmetic intensity", "memory bound", "compute bound", "bandwidth"],
  "book/conv1d": ["1d convolution", "U-Net"],
  "book/conv2d": ["2d convolution", "texture", "texture memory", "constant memory"],
  "book/conv3d": ["3d convolution", "register window", "plane"],
  "book/classifier": ["classifier", "skinny gemm", "split-k", "split k"],
  "book/conv-layers": ["im2col", "implicit gemm", "implicit gemm convolution", "winograd", "convolution layer"],
  "book/sparsity": ["sparsity", "2:4", "structured sparsity", "mma.sp", "wgmma.sp", "csr", "spmv", "spmm", "pruning", "cusparse", "cusparselt"],
  "book/sgemm": ["sgemm", "stream-k", "stream k", "tensor core", "double buffering", "cp.async", "matrix multiplication"],
  "book/async-copies": ["asynchronous copy", "tma", "tensor memory accelerator", "mbarrier", "thread block cluster", "multicast",
    "distributed shared memory", "setmaxnreg", "warp specialisation", "programmatic dependent launch"],
  "book/many-gpus": ["nccl", "multi-gpu", "several gpus", "nvlink", "all-reduce", "allreduce", "halo exchange", "peer access", "deadlock"],
  "book/other-algorithms": ["fft", "fast fourier transform", "fourier transform", "overlap-save", "fft convolution"],
  "book/a-network": ["network", "cuda graph", "launch latency", "persistent kernel", "dependent launch", "group norm", "pytorch operator",
    "custom operator", "diffusion policy"],
  "book/sources": ["sources", "claims"],
  "book/profiling": ["profiling", "profiler", "nsight compute", "ncu", "stall", "stall reason", "eligible warp"],
  "book/emulator": ["emulator", "ptx", "race", "race detector"],
};

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  // Return the score of [docname, title, anchor, descr, score, filename].
  score: ([docname, title, anchor, , score]) => {
    const asked = Scorer.stems(new URLSearchParams(location.search).get("q") || "");
    if (!asked || anchor) return score;
    if ((SUBJECTS[docname] || []).some((subject) => Scorer.stems(subject) === asked)) return score + 1000;
    return Scorer.stems(title) === asked ? score + 500 : score;
  },

  stems: (text) => {
    const stemmer = new Stemmer();
    return splitQuery(text.toLowerCase().trim()).map((word) => stemmer.stemWord(word)).join(" ");
  },
};

// A subject that its chapter does not name in so many words is found there all the same. This file stands before
// Search in searchtools.js; a microtask runs when that script is done, before the index is loaded.
queueMicrotask(() => {
  const plain = Search._performSearch;
  Search._performSearch = (query, ...terms) => {
    const results = plain(query, ...terms);
    const { docnames, titles, filenames } = Search._index;
    const asked = Scorer.stems(query);
    docnames.forEach((name, at) => {
      const about = (SUBJECTS[name] || []).some((subject) => Scorer.stems(subject) === asked);
      const found = results.some((result) => result[0] === name && result[2] === "");
      if (about && !found) results.push([name, titles[at], "", null, 1000, filenames[at]]);
    });
    return results;
  };
});

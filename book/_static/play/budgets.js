/* The playgrounds of budgets: the blocks that fit on an SM, and the roofline of a GPU. */
(function (P) {
  "use strict";
  const { svg, html, text, box, data } = P;
  const picture = (words) => ({ role: "img", "aria-label": words });
  const path = (points, attributes) => svg("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join(""), ...attributes });

  const AXES = {
    registers: ["registers per thread", (sm, rules) => [1, rules.registersPerThread, 1], 32],
    threads: ["threads per block", (sm, rules) => [P.WARP, rules.threads, P.WARP], 128],
    shared: ["KB of shared memory per block", (sm) => [0, sm.sharedPerBlock, 1024], 32 * 1024],
  };

  P.kinds.occupancy = {
    title: "How many warps fit on an SM?",
    defaults: { registers: 32, shared: 0, threads: 256, arch: "sm_90", over: "registers" },
    role: picture,
    key: [["rl-play-used", "warps on the SM, by block"], ["rl-play-idle", "empty warp slot"], ["rl-play-limit", "what allows no further block"]],
    controls: (ui, state) => {
      const over = (name) => () => { state.over = name; };
      return [P.dials(
        ui.number("registers", "Registers per thread", { min: 1, max: () => data.rules.registersPerThread, then: over("registers") }),
        ui.number("threads", "Threads per block", { min: P.WARP, max: () => data.rules.threads, step: P.WARP, then: over("threads") }),
        ui.number("shared", "Shared memory per block", { min: 0, max: (s) => data.sm[s.arch].sharedPerBlock, step: 1024, unit: "bytes", then: over("shared") }),
        ui.choice("arch", "GPU architecture", Object.entries(data.sm).map(([arch, sm]) => [arch, `${arch} (${sm.capability})`])))];
    },
    compute: (state) => {
      const sm = data.sm[state.arch], found = P.occupancy(state, sm, data.rules);
      return { ...found, sm, say: P.sayOccupancy(found) };
    },
    draw: (found, state, width) => {
      const { sm } = found, parts = [], narrow = width < 520, columns = 32, unit = (width - 2) / columns;
      const slots = sm.warps, tall = Math.min(20, unit), taken = found.refused ? 0 : found.warps;
      parts.push(text(0, 12, `One SM: ${slots} warp slots, ${taken} taken`));
      for (let slot = 0; slot < slots; slot++) {
        const block = Math.floor(slot / found.warpsPerBlock), on = slot < taken;
        const cell = box(1 + (slot % columns) * unit + 0.5, 20 + Math.floor(slot / columns) * (tall + 2), unit - 1, tall,
          { class: on ? "rl-play-used" : "rl-play-idle", style: on ? P.colour(block % 2 ? 22 : 12) : "" });
        cell.append(P.tip(on ? `block ${block}, warp ${slot % found.warpsPerBlock}` : "empty"));
        parts.push(cell);
      }
      let y = 20 + Math.ceil(slots / columns) * (tall + 2) + 26;
      const barWidth = narrow ? width : width * 0.4, left = 104, limits = found.limits || {};
      const most = Math.max(sm.blocks, ...Object.values(limits));
      parts.push(text(0, y, "Blocks that each resource allows"));
      Object.entries(limits).forEach(([name, blocks], i) => {
        const at = y + 12 + i * 24, limiting = found.limitedBy.includes(name);
        parts.push(text(left - 8, at + 9, name, { "text-anchor": "end", "dominant-baseline": "central" }),
          box(left, at, Math.max(2, ((barWidth - left - 34) * blocks) / most), 18, { class: limiting ? "rl-play-limit" : "rl-play-quiet" }),
          text(left + Math.max(2, ((barWidth - left - 34) * blocks) / most) + 6, at + 9, blocks, { "dominant-baseline": "central", class: limiting ? "rl-play-bold" : "" }));
      });
      if (found.refused) parts.push(text(left - 8, y + 24, "none", { "text-anchor": "end" }));
      const x0 = narrow ? 34 : barWidth + 56;
      if (narrow) y += 12 + 4 * 24 + 30;
      const [shown, range, tick] = AXES[state.over], [low, high, step] = range(sm, data.rules);
      const wide = width - x0 - 16, height = narrow ? 130 : 92, x = (v) => x0 + (wide * (v - low)) / (high - low), h = (v) => y + 12 + height * (1 - v / slots);
      parts.push(text(x0 - 26, y, `Warps on the SM, by ${shown}`));
      const at = (value) => {
        const one = P.occupancy({ ...state, [state.over]: value }, sm, data.rules);
        return one.refused ? 0 : one.warps;
      };
      const stairs = [[x(low), h(0)]];
      let before = null;
      for (let value = low; value <= high; value += step) {
        const warps = at(value);
        if (before !== null && warps !== before) stairs.push([x(value - step / 2), h(before)], [x(value - step / 2), h(warps)]);
        else if (before === null) stairs.push([x(value), h(warps)]);
        before = warps;
      }
      stairs.push([x(high), h(before)]);
      parts.push(path([...stairs, [x(high), h(0)]], { class: "rl-play-area" }), path(stairs.slice(1), { class: "rl-play-line" }));
      for (const warps of [0, slots / 2, slots]) {
        parts.push(svg("line", { x1: x0, x2: x(high), y1: h(warps), y2: h(warps), class: "rl-play-rule" }), text(x0 - 6, h(warps), warps, { "text-anchor": "end", "dominant-baseline": "central" }));
      }
      for (let value = state.over === "shared" ? 0 : tick; value <= high; value += tick * (narrow && state.over !== "registers" ? 2 : 1)) {
        if (wide / (high / tick) < 26 && (value / tick) % 2) continue;
        parts.push(text(x(value), y + height + 30, state.over === "shared" ? value / 1024 : value, { "text-anchor": "middle" }));
      }
      const here = [x(Math.min(high, Math.max(low, state[state.over]))), h(taken)];
      parts.push(svg("line", { x1: here[0], x2: here[0], y1: h(0), y2: here[1], class: "rl-play-drop" }), svg("circle", { cx: here[0], cy: here[1], r: 5, class: "rl-play-dot" }));
      return [width, y + height + 38, ...parts];
    },
  };

  const preset = (state) => data.presets.find((one) => one.name === state.preset);
  const own = (state) => {
    const one = preset(state);
    if (!one || one.flops !== state.flops || one.bytes !== state.bytes || one.bandwidth !== state.bandwidth) state.preset = "";
  };
  P.kinds.roofline = {
    title: "Memory or arithmetic: what limits a kernel?",
    defaults: { preset: "", flops: 1e12, bytes: 1e10, gpu: "nvidia-h200", bandwidth: "copy_gb_s" },
    role: picture,
    key: [["rl-play-roof", "roof: measured ceilings"], ["rl-play-round rl-play-used", "the most that this problem can reach"], ["rl-play-round rl-play-quiet", "best measured rung of a ladder"]],
    controls: (ui, state) => [P.dials(
      ui.choice("preset", "Problem", [["", "your own"], ...data.presets.map((one) => [one.name, `${one.name} (${one.size})`])],
        () => { const { flops, bytes, bandwidth } = preset(state) || state; Object.assign(state, { flops, bytes, bandwidth }); }),
      ui.number("flops", "Operations", { min: 1e3, max: 1e16, log: true, unit: "FLOP" }),
      ui.number("bytes", "Data moved", { min: 1e3, max: 1e13, log: true, unit: "B" })),
      P.more(ui.choice("bandwidth", "Memory traffic", [["copy_gb_s", "reads and writes"], ["read_gb_s", "only reads"]]),
      ui.choice("gpu", "GPU", Object.entries(data.gpus).map(([slug, gpu]) => [slug, gpu.name])))],
    settle: own,
    compute: (state) => {
      const gpu = data.gpus[state.gpu], bandwidth = gpu.ceilings[state.bandwidth], peak = gpu.ceilings.fma_tflop_s;
      const found = P.roofline(state.flops, state.bytes, bandwidth, peak);
      return { ...found, bandwidth, peak, say: P.sayRoofline(state.flops, state.bytes, found, gpu.name) };
    },
    draw: (found, state, width, changed) => {
      const { intensity, rate, ridge, peak, bandwidth } = found, narrow = width < 520, height = narrow ? 270 : 340, parts = [];
      const left = narrow ? 40 : 48, right = 10, top = 24, bottom = 40;
      const low = Math.min(0.1, intensity / 3), high = Math.max(3000, intensity * 3), floor = Math.min(1e11, low * bandwidth), ceiling = peak * 2.5;
      const x = (v) => left + ((width - left - right) * Math.log(v / low)) / Math.log(high / low);
      const y = (v) => top + (height - top - bottom) * (1 - Math.log(v / floor) / Math.log(ceiling / floor));
      const roof = [[x(Math.max(low, floor / bandwidth)), y(Math.max(low * bandwidth, floor))], [x(ridge), y(peak)], [x(high), y(peak)]];
      parts.push(path([...roof, [x(high), y(floor)], [roof[0][0], y(floor)]], { class: "rl-play-area" }));
      const decades = (a, b) => Array.from({ length: Math.floor(Math.log10(b) + 1e-9) - Math.ceil(Math.log10(a) - 1e-9) + 1 }, (_, i) => 10 ** (Math.ceil(Math.log10(a) - 1e-9) + i));
      const ticks = decades(low, high), sparse = Math.ceil((ticks.length * 44) / (width - left)) ;
      ticks.forEach((v, i) => {
        parts.push(svg("line", { x1: x(v), x2: x(v), y1: y(floor), y2: top, class: "rl-play-rule" }));
        if (i % sparse === 0) parts.push(text(x(v), height - bottom + 17, v >= 1e6 ? v.toExponential(0).replace("+", "") : String(Number(v.toPrecision(1))), { "text-anchor": "middle" }));
      });
      for (const v of decades(floor, ceiling)) {
        const shown = P.prefixed(v, "").replace(/\.?0+(?= )/, (zeros) => (zeros.startsWith(".") ? "" : zeros));
        parts.push(svg("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "rl-play-rule" }), text(left - 6, y(v), shown, { "text-anchor": "end", "dominant-baseline": "central" }));
      }
      parts.push(text(0, 11, "FLOP/s"), text(width - right, height - 6, "FLOP per byte", { "text-anchor": "end" }));
      parts.push(svg("line", { x1: x(ridge), x2: x(ridge), y1: y(floor), y2: y(peak), class: "rl-play-ridge" }), path(roof, { class: "rl-play-roofline" }));
      parts.push(text(x(high) - 4, y(peak) - 8, `${P.prefixed(peak, "FLOP/s")}`, { "text-anchor": "end", class: "rl-play-rooftext" }));
      const [ax, ay] = roof[0], slope = (Math.atan2(y(peak) - ay, x(ridge) - ax) * 180) / Math.PI, mx = ax + (x(ridge) - ax) * 0.45, my = ay + (y(peak) - ay) * 0.45;
      parts.push(text(0, 0, `${P.prefixed(bandwidth, "B/s")}`, { "text-anchor": "middle", class: "rl-play-rooftext", transform: `translate(${mx},${my}) rotate(${slope}) translate(0,-8)` }));
      parts.push(text(x(ridge) + 5, y(floor) - 7, `ridge ${P.significant(ridge)}`, { class: "rl-play-rooftext" }));
      let label = null;
      for (const one of data.presets) {
        const best = one.best[state.gpu];
        if (!best) continue;
        const chosen = one.name === state.preset, cx = x(one.flops / one.bytes), reached = one.flops / best.seconds, share = P.percent(Math.round(1e6 * reached), Math.round(1e6 * rate));
        if (cx < left || reached < floor) continue;
        const dot = svg("circle", { cx, cy: y(reached), r: chosen ? 5 : 4, class: `rl-play-known${chosen ? " rl-play-chosen" : ""}`,
          onclick: () => { Object.assign(state, { preset: one.name, flops: one.flops, bytes: one.bytes, bandwidth: one.bandwidth }); changed(); } });
        dot.append(P.tip(`${one.name}: its best rung, ${best.rung}, reaches ${P.prefixed(reached, "FLOP/s")}`));
        parts.push(dot);
        if (chosen) label = `\u25cf ${best.rung}: ${narrow ? "" : `${P.prefixed(reached, "FLOP/s")}, `}${share} of the roof`;
      }
      const px = x(intensity), py = y(rate);
      parts.push(svg("line", { x1: px, x2: px, y1: y(floor), y2: py, class: "rl-play-drop" }), svg("circle", { cx: px, cy: py, r: 6.5, class: "rl-play-dot" }));
      if (label) parts.push(text(width - right, 11, label, { "text-anchor": "end", class: "rl-play-bold" }));
      return [width, height, ...parts];
    },
  };
})(globalThis.RLPlay);

/* What an access, a block or a problem costs, in the emulator's and the bench's rules: climb/emulator/counters,
 * climb/toolchain/occupancy.py and climb/bench/roofline.py. Tests hold both to the same numbers and sentences. No DOM in here. */
(function (P) {
  "use strict";
  const SECTOR = 32, LINE = 128, BANKS = 32;
  const floor = Math.floor, count = (set) => new Set(set).size;
  const upTo = (amount, unit) => Math.ceil(amount / unit) * unit;
  const plural = (n, noun) => (n === 1 ? `${n} ${noun}` : `${n} ${noun}s`);

  /* A share as a whole percentage; never 0 % or 100 % unless it is exactly that. */
  P.percent = (part, whole) => {
    const rounded = floor((200 * part + whole) / (2 * whole));
    if (rounded === 0 && part > 0) return "less than 1 %";
    return rounded === 100 && part < whole ? "more than 99 %" : `${rounded} %`;
  };

  /* Three significant digits without exponent; ties go to the even digit, as Python's round does. */
  P.significant = (value, digits = 3) => {
    if (value === 0 || !Number.isFinite(value)) return String(value);
    const [mantissa, power] = Math.abs(value).toExponential(60).split("e");
    const all = mantissa.replace(".", ""), rest = all.slice(digits);
    let kept = BigInt(all.slice(0, digits)), exponent = Number(power);
    if (rest[0] > "5" || (rest[0] === "5" && (/[1-9]/.test(rest.slice(1)) || kept % 2n === 1n))) kept += 1n;
    if (String(kept).length > digits) { kept /= 10n; exponent += 1; }
    const text = String(kept), sign = value < 0 ? "-" : "";
    if (exponent >= digits - 1) return sign + text + "0".repeat(exponent - digits + 1);
    return sign + (exponent < 0 ? "0." + "0".repeat(-exponent - 1) + text : text.slice(0, exponent + 1) + "." + text.slice(exponent + 1));
  };
  P.prefixed = (value, unit) => {
    for (const [scale, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (value >= scale * 0.9995) return `${P.significant(value / scale)} ${prefix}${unit}`;
    }
    return `${P.significant(value)} ${unit}`;
  };
  P.timeText = (seconds) => {
    for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
      if (seconds >= scale * 0.9995) return `${P.significant(seconds / scale)} ${unit}`;
    }
    return `${P.significant(seconds / 1e-9)} ns`;
  };

  /* The value of one of the state's expressions; an error says which one it is in. */
  const ask = (state, input, active) => {
    try {
      return P.lanes(state[input], state.block, active);
    } catch (error) {
      throw Object.assign(error, { input });
    }
  };
  const activeLanes = (state) => ask(state, "active").map((value) => value !== 0);
  const numbers = (flags) => flags.map((on, lane) => (on ? lane : -1)).filter((lane) => lane >= 0);

  /* Sectors: one global load or store. */
  P.sectors = (addresses, active, width) => {
    const lanes = numbers(active), used = width * count(lanes.map((lane) => addresses[lane]));
    const sectors = [...new Set(lanes.map((lane) => floor(addresses[lane] / SECTOR)))].sort((a, b) => a - b);
    const lines = [...new Set(sectors.map((sector) => floor(sector * SECTOR / LINE)))];
    return { lanes, sectors, lines, used, moved: sectors.length * SECTOR, least: Math.ceil(used / SECTOR) };
  };
  P.saySectors = ({ lanes, sectors, lines, used, moved, least }) => {
    if (!lanes.length) return "No lane is active: nothing moves.";
    const most = sectors.length === least ? "the fewest possible" : `${least} would do`;
    const waste = used === moved
      ? `All ${moved} bytes that move are used.`
      : `${P.percent(moved - used, moved)} of the ${moved} bytes that move are thrown away.`;
    return `${plural(sectors.length, "sector")} on ${plural(lines.length, "line")} for ${plural(lanes.length, "lane")}, ${most}. ${waste}`;
  };
  P.computeSectors = (state) => {
    const active = activeLanes(state), index = ask(state, "index", active);
    const addresses = index.map((each) => each * state.width + state.offset);
    const cost = P.sectors(addresses, active, state.width);
    return { active, index, addresses, cost, say: P.saySectors(cost) };
  };

  /* Banks: one shared load or store. A warp is served in parts; in each part, each bank serves its words in turn. */
  const storeParts = (width) => ({ 8: 2, 16: 4 })[width] || 1;
  const loadParts = (addresses, active, width) => {
    const paired = (bit) => addresses.every((address, lane) => !active[lane] || !active[lane ^ bit] || address === addresses[lane ^ bit]);
    return width >= 8 && (paired(1) || paired(2)) ? storeParts(width) / 2 : storeParts(width);
  };
  P.banks = (addresses, active, width, access) => {
    const parts = access === "load" ? loadParts(addresses, active, width) : storeParts(width);
    const words = [], size = P.WARP / parts;
    let before = 0, least = 0;
    for (let part = 0; part < parts; part++) {
      const lanes = numbers(active).filter((lane) => floor(lane / size) === part), queues = new Map();
      for (const lane of lanes) {
        for (let word = floor(addresses[lane] / 4); word <= floor((addresses[lane] + width - 1) / 4); word++) {
          const bank = word % BANKS, queue = queues.get(bank) || [];
          queues.set(bank, queue);
          let one = queue.find((each) => each.number === word);
          if (!one) {
            one = { wavefront: before + queue.length, bank, number: word, lanes: [] };
            queue.push(one);
            words.push(one);
          }
          one.lanes.push(lane);
        }
      }
      before += Math.max(0, ...[...queues.values()].map((queue) => queue.length));
      least += lanes.length ? 1 : 0;
    }
    return { lanes: numbers(active), words, wavefronts: before, least, parts };
  };
  P.sayBanks = ({ lanes, words, wavefronts, least }) => {
    if (!lanes.length) return "No lane is active: no wavefront.";
    const shared = words.filter((word) => word.lanes.length > 1).length;
    const broadcast = shared ? ` ${plural(shared, "word")} ${shared === 1 ? "serves" : "serve"} several lanes at once, by broadcast.` : "";
    const cost = `${plural(wavefronts, "wavefront")} for ${plural(lanes.length, "lane")}`;
    if (wavefronts === least) return `${cost}, the fewest possible: no bank conflict.${broadcast}`;
    const load = new Array(BANKS).fill(0);
    for (const word of words) load[word.bank] += 1;
    const most = Math.max(...load);
    return `${cost}; ${least} would do. Bank ${load.indexOf(most)} has ${most} different words to deliver, one after another.${broadcast}`;
  };
  /* The element that a lane reaches in a tile: a padded row, and a column swizzled by the low bits of the row. */
  P.element = (row, column, state) => row * (state.columns + state.pad) + (state.swizzle ? column ^ (row & (1 << state.swizzle) - 1) : column);
  P.computeBanks = (state) => {
    const active = activeLanes(state);
    let row, column;
    if (state.index !== undefined && state.index !== "") {
      const index = ask(state, "index", active);
      row = index.map((each) => floor(each / state.columns));
      column = index.map((each, lane) => each - row[lane] * state.columns);
    } else {
      row = ask(state, "row", active);
      column = ask(state, "column", active);
    }
    const element = row.map((each, lane) => P.element(each, column[lane], state));
    const bad = element.findIndex((each) => each < 0 || each >= 2 ** 31);
    if (bad >= 0) throw new P.ExpressionError(`lane ${bad} reaches element ${element[bad]}, outside shared memory`, 0);
    const addresses = element.map((each) => each * state.width);
    const cost = P.banks(addresses, active, state.width, state.access);
    return { active, row, column, element, addresses, cost, say: P.sayBanks(cost) };
  };

  /* Occupancy. `sm` and `rules` come from the data that the build writes. */
  P.occupancy = ({ registers, shared, threads }, sm, rules) => {
    const warps = Math.ceil(threads / P.WARP), perWarp = upTo(registers * P.WARP, rules.registerUnit);
    for (const [what, value, least, most] of [
      ["threads per block", threads, 1, rules.threads], ["registers per thread", registers, 0, rules.registersPerThread],
      ["bytes of shared memory per block", shared, 0, sm.sharedPerBlock],
    ]) {
      if (!(value >= least && value <= most)) return { refused: `${value} ${what}; compute capability ${sm.capability} takes ${least} to ${most}` };
    }
    const file = upTo(warps, rules.schedulers) * perWarp;
    if (file > rules.registersPerBlock) return { refused: `${threads} threads of ${registers} registers need ${file}; a block has ${rules.registersPerBlock}` };
    const blockShared = upTo(shared + sm.reservedShared, sm.sharedUnit);
    const byRegisters = perWarp ? rules.schedulers * floor(rules.registers / rules.schedulers / perWarp) : sm.warps;
    const limits = {
      "warps": floor(sm.warps / warps), "blocks": sm.blocks, "registers": floor(byRegisters / warps),
      "shared memory": blockShared ? floor(sm.shared / blockShared) : sm.blocks,
    };
    const blocks = Math.min(...Object.values(limits));
    const limitedBy = Object.keys(limits).filter((name) => limits[name] === blocks);
    return { blocks, warpsPerBlock: warps, warps: blocks * warps, slots: sm.warps, limits, limitedBy, perWarp, blockShared };
  };
  P.sayOccupancy = (found) => {
    if (found.refused) return `This block cannot start: ${found.refused}.`;
    const { blocks, warpsPerBlock, warps, slots, limitedBy } = found;
    return `${plural(blocks, "block")} of ${plural(warpsPerBlock, "warp")} on each SM: ${warps} of ${slots} warps, ` +
      `${P.percent(warps, slots)} occupancy. Limited by ${limitedBy.join(" and ")}.`;
  };

  /* Roofline: ceilings in bytes and FLOP a second. */
  P.roofline = (flops, bytes, bandwidth, peak) => {
    const memory = bytes / bandwidth, arithmetic = flops / peak, seconds = Math.max(memory, arithmetic);
    return { memory, arithmetic, seconds, bound: memory >= arithmetic ? "memory" : "arithmetic", intensity: flops / bytes,
      ridge: peak / bandwidth, rate: flops / seconds };
  };
  P.sayRoofline = (flops, bytes, found, gpu) => {
    const side = found.bound === "memory" ? "below" : "above";
    const limit = found.bound === "memory" ? "Memory bandwidth" : "Arithmetic";
    return `${P.significant(found.intensity)} FLOP per byte, ${side} the ridge at ${P.significant(found.ridge)}. ${limit} is the limit ` +
      `on the ${gpu}: ${P.prefixed(found.rate, "FLOP/s")} at best, so ${P.prefixed(flops, "FLOP")} and ${P.prefixed(bytes, "B")} ` +
      `take at least ${P.timeText(found.seconds)}.`;
  };
})(globalThis.RLPlay);

/* The playgrounds of memory accesses: sectors of global memory, and banks of shared memory. */
(function (P) {
  "use strict";
  const { svg, html, text, box } = P;
  const MARKED = [0, 8, 16, 24, 31];
  const offset = (bytes) => {
    for (const [unit, scale] of [["M", 2 ** 20], ["K", 1024]]) if (Math.abs(bytes) >= 8 * scale && bytes % scale === 0) return `+${bytes / scale}${unit}`;
    return `${bytes < 0 ? "\u2212" : "+"}${Math.abs(bytes)}`;
  };
  const who = (lanes) => {
    if (lanes.length === 1) return `lane ${lanes[0]}`;
    return lanes[lanes.length - 1] - lanes[0] === lanes.length - 1 ? `lanes ${lanes[0]}\u2013${lanes[lanes.length - 1]}` : `${lanes.length} lanes`;
  };
  const shapes = (names) => names.map(([shown, values]) => [html("code", {}, shown), values]);

  /* Lanes above, rows of 32 columns below, and lines from the marked lanes to their first byte. A row has a label, its
   * cells (column, width and offset in columns, lanes), and the stretches that move or serve without being used. */
  const grid = (width, active, rows, { heads, column, cellClass, toggle, groups }) => {
    const narrow = width < 520, left = narrow ? 46 : 74, right = narrow ? 4 : 82, unit = (width - left - right) / 32;
    const x = (at) => left + at * unit, parts = [];
    const height = Math.max(7, Math.min(rows.length < 5 ? 28 : 20, Math.floor(320 / rows.length))), gap = Math.max(3, height * 0.3);
    const laneTop = 20, top = 84;
    parts.push(text(left - 8, 14, "lane", { "text-anchor": "end" }));
    for (const lane of MARKED) parts.push(text(x(lane + 0.5), 14, lane, { "text-anchor": "middle" }));
    parts.push(text(left - 8, top - 10, heads, { "text-anchor": "end" }));
    const ends = new Map(), gridParts = [];
    const every = Math.max(1, Math.ceil(15 / height));
    let bottom = top;
    rows.forEach((row, i) => {
      const y = bottom + (row.gap ? gap : 0);
      bottom = y + height;
      for (const [start, length] of row.unused) gridParts.push(box(x(start), y, length * unit, height, { class: row.idle }));
      for (const cell of row.cells) {
        const each = box(x(cell.at), y, cell.length * unit, height, { class: cellClass(cell), style: P.colour(cell.lanes[0]), "data-of": cell.lanes.join(" ") });
        each.append(P.tip(`${who(cell.lanes)}: ${cell.title}`));
        gridParts.push(each);
        for (const lane of cell.lanes) if (!ends.has(lane)) ends.set(lane, [x(cell.at + cell.length / 2), y + height / 2]);
      }
      for (let start = 0; start < 32; start += groups) gridParts.push(box(x(start), y, groups * unit, height, { class: "rl-play-edge" }));
      if (i % every === 0 || i === rows.length - 1) {
        if (i === rows.length - 1 || rows.length - 1 - i >= every * 0.6) {
          parts.push(text(left - 8, y + height / 2, row.label, { "text-anchor": "end", "dominant-baseline": "central" }));
          if (!narrow) parts.push(text(x(32) + 8, y + height / 2, who(row.lanes), { "dominant-baseline": "central" }));
        }
      }
    });
    parts.push(...gridParts);
    for (const lane of active.flatMap((on, each) => (on ? [each] : []))) {
      if (!ends.has(lane)) continue;
      const [ex, ey] = ends.get(lane), ends2 = { x1: x(lane + 0.5), y1: laneTop + 20, x2: ex, y2: ey };
      const marked = MARKED.includes(lane) ? "" : " rl-play-more";
      parts.push(svg("g", { class: "rl-play-arrow" + marked, "data-of": lane }, svg("line", { ...ends2, class: "rl-play-halo" }), svg("line", ends2), svg("circle", { cx: ex, cy: ey, r: 2.6 })));
    }
    parts.push(P.laneSwitches(active, toggle, 0, (lane, on) => svg("g", {},
      box(x(lane), laneTop - 4, unit, 28, { class: "rl-play-hit" }),
      box(x(lane) + 0.5, laneTop, unit - 1, 20, { class: on ? "rl-play-used" : "rl-play-off", style: on ? P.colour(lane) : "" }),
      P.tip(on ? `lane ${lane}: click to switch it off` : `lane ${lane} is off: click to switch it on`))));
    parts.push(...column(x, bottom + 16));
    return [width, bottom + 26, ...parts];
  };
  const toggler = (found, state, changed) => (lane) => {
    state.active = P.condition(found.active.map((on, each) => (each === lane ? !on : on)));
    changed();
  };
  const blockChoice = (ui) => ui.choice("block", "Threads in a row of the block", [[32, "32"], [16, "16"], [8, "8"], [4, "4"]]);
  const role = (words) => ({ role: "group", "aria-label": `Picture. ${words}` });

  P.kinds.sectors = {
    title: "Which sectors does a warp move?",
    defaults: { index: "lane", width: 4, offset: 0, active: "lane < 32", block: 32 },
    role,
    key: [["rl-play-used", "bytes used, by lane"], ["rl-play-waste", "bytes moved for nothing"]],
    controls: (ui) => [
      html("p", { class: "rl-play-program" }, "if (", ui.code("active", "Condition: which lanes are active"), ") ", html("wbr"), "value = data[", ui.code("index", "Index expression"), "];"),
      ui.tries("Try", shapes(["lane", "lane * 2", "lane * 32", "lane / 8", "31 - lane", "(lane ^ 5) + 3", "lane * 7 % 32"].map((index) => [index, { index }]))),
      P.dials(ui.choice("width", "Each lane loads", [[1, "char (1 byte)"], [2, "half (2 bytes)"], [4, "float (4 bytes)"], [8, "float2 (8 bytes)"], [16, "float4 (16 bytes)"]]),
        ui.number("offset", "Misalignment of data", { min: 0, max: (s) => 128 - s.width, step: (s) => s.width, unit: "bytes" })),
      P.more(blockChoice(ui)),
    ],
    settle: (state) => { state.offset -= state.offset % state.width; },
    compute: (state) => P.computeSectors(state),
    draw: (found, state, width, changed) => {
      const { active, addresses, index, cost } = found, moved = new Set(cost.sectors);
      const rows = cost.lines.map((line, i) => {
        const cells = new Map();
        for (const lane of cost.lanes) {
          if (Math.floor(addresses[lane] / 128) !== line) continue;
          const at = (addresses[lane] - line * 128) / 4, known = cells.get(at);
          if (known) known.lanes.push(lane);
          else cells.set(at, { at, length: state.width / 4, lanes: [lane], title: `data[${index[lane]}], byte ${addresses[lane] - line * 128} of the line` });
        }
        const list = [...cells.values()];
        return { label: offset(line * 128), cells: list, lanes: cost.lanes.filter((lane) => Math.floor(addresses[lane] / 128) === line), idle: "rl-play-waste",
          unused: [0, 1, 2, 3].filter((s) => moved.has(line * 4 + s)).map((s) => [8 * s, 8]), gap: i > 0 && cost.lines[i - 1] !== line - 1 };
      });
      return grid(width, active, rows, {
        heads: "byte", groups: 8, toggle: toggler(found, state, changed), cellClass: () => "rl-play-used",
        column: (x, y) => [0, 1, 2, 3].map((s) => text(x(8 * s + 4), y, `sector ${s}`, { "text-anchor": "middle" })),
      });
    },
  };

  P.kinds.banks = {
    title: "Which lanes meet in a bank?",
    defaults: { row: "lane", column: "0", index: "", width: 4, columns: 32, pad: 0, swizzle: 0, access: "load", active: "lane < 32", block: 32 },
    role,
    key: [["rl-play-used", "word served, by lane"], ["rl-play-cast", "word for several lanes (broadcast)"], ["rl-play-waste", "bank idle while lanes wait"]],
    controls: (ui, state) => {
      const types = { 4: "float", 8: "float2", 16: "float4" };
      const place = state.index !== "" ? ["tile[", ui.code("index", "Index expression"), "]"]
        : ["tile[", ui.code("row", "Row expression"), "][", ui.code("column", "Column expression"), "]"];
      const cases = state.index !== "" ? ["lane", "lane * 2", "lane * 32", "lane / 4"].map((index) => [index, { index }])
        : [["[lane][0]", { row: "lane", column: "0" }], ["[0][lane]", { row: "0", column: "lane" }], ["[lane][3]", { row: "lane", column: "3" }],
          ["[lane / 8][lane % 8]", { row: "lane / 8", column: "lane % 8" }], ["[lane % 8][lane / 8]", { row: "lane % 8", column: "lane / 8" }]];
      return [
        html("p", { class: "rl-play-program" },
          ui.note((s) => `__shared__ ${types[s.width]} tile[][${s.columns}${s.pad ? ` + ${s.pad}` : ""}];${s.swizzle ? `  // element [row][column ^ (row & ${2 ** s.swizzle - 1})]` : ""}`),
          "if (", ui.code("active", "Condition: which lanes are active"), ") ", html("wbr"), ...place),
        ui.tries("Try", shapes(cases)),
        P.dials(ui.number("pad", "Padding of a row", { min: 0, max: 32, unit: "elements" }), ui.number("swizzle", "XOR swizzle", { min: 0, max: 5, unit: "bits" })),
        P.more(ui.choice("width", "Element", [[4, "float (4 bytes)"], [8, "float2 (8 bytes)"], [16, "float4 (16 bytes)"]]),
          ui.choice("access", "Access", [["load", "load"], ["store", "store"]]), ui.number("columns", "Row length", { min: 1, max: 256, unit: "elements" }), blockChoice(ui)),
      ];
    },
    compute: (state) => P.computeBanks(state),
    draw: (found, state, width, changed) => {
      const { active, row, column, cost } = found;
      const rows = Array.from({ length: cost.wavefronts }, (_, wavefront) => {
        const words = cost.words.filter((word) => word.wavefront === wavefront), busy = new Set(words.map((word) => word.bank));
        return { label: wavefront + 1, lanes: [...new Set(words.flatMap((word) => word.lanes))].sort((a, b) => a - b),
          idle: cost.wavefronts > cost.least ? "rl-play-waste" : "rl-play-idle", unused: Array.from({ length: 32 }, (_, bank) => bank).filter((bank) => !busy.has(bank)).map((bank) => [bank, 1]),
          cells: words.map((word) => ({ at: word.bank, length: 1, lanes: word.lanes, title: `tile[${row[word.lanes[0]]}][${column[word.lanes[0]]}], bank ${word.bank}, wavefront ${wavefront + 1}` })) };
      });
      return grid(width, active, rows, {
        heads: width < 520 ? "wave" : "wavefront", groups: 1, toggle: toggler(found, state, changed), cellClass: (cell) => (cell.lanes.length > 1 ? "rl-play-used rl-play-cast" : "rl-play-used"),
        column: (x, y) => [text(x(0) - 8, y, "bank", { "text-anchor": "end" }), ...MARKED.map((bank) => text(x(bank + 0.5), y, bank, { "text-anchor": "middle" }))],
      });
    },
  };
})(globalThis.RLPlay);

/* What all playgrounds share: controls with labels, pictures as SVG, the sentence, errors, and links to a state. */
(function (P) {
  "use strict";
  const make = (namespace) => (tag, attributes = {}, ...children) => {
    const element = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  const html = (P.html = make(null)), svg = (P.svg = make("http://www.w3.org/2000/svg"));
  // Sphinx marks searched words everywhere, but a tip has no box to draw behind.
  P.tip = (words) => svg("title", { class: "nohighlight" }, words);
  P.text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, String(words));
  P.box = (x, y, width, height, attributes = {}) => svg("rect", { x, y, width: Math.max(0, width), height, ...attributes });
  P.colour = (lane) => `fill: var(--rl-lane-${lane})`;
  P.dials = (...parts) => html("div", { class: "rl-play-dials" }, ...parts);
  P.more = (...parts) => html("details", {}, html("summary", {}, "More settings"), P.dials(...parts));
  P.plural = (n, noun) => (n === 1 ? `${n} ${noun}` : `${n} ${noun}s`);

  let ids = 0;
  const label = (words, input) => {
    input.id = input.id || `rl-play-${++ids}`;
    return html("label", { for: input.id }, words);
  };
  const field = (words, input, ...parts) => html("div", { class: "rl-play-field" }, label(words, input), ...parts, input);

  /* A control writes its value into the state and asks for a new picture; `show` writes the state into the control. */
  const controls = (state, changed) => {
    const shows = [];
    const add = (element, show) => { shows.push(show); show(); return element; };
    return {
      show: () => shows.forEach((show) => show()),
      code(name, words) {
        const input = html("input", {
          type: "text", class: "rl-play-code", maxlength: 200, spellcheck: "false", autocomplete: "off", autocapitalize: "off", autocorrect: "off",
          "aria-label": words, "data-name": name, oninput: () => { state[name] = input.value; fit(); changed(); },
        });
        const fit = () => { input.style.width = `${Math.max(4, Math.min(34, input.value.length + 2))}ch`; };
        return add(input, () => { if (input.value !== state[name]) input.value = state[name]; fit(); });
      },
      number(name, words, { min, max, step = 1, unit = "", log = false, then = () => {} }) {
        const bounds = { min: 0, max: 0, step: 1 };
        const slide = (value) => (log ? (1000 * Math.log(value / bounds.min)) / Math.log(bounds.max / bounds.min) : value);
        const slid = (at) => (log ? Number((bounds.min * (bounds.max / bounds.min) ** (at / 1000)).toPrecision(3)) : at);
        const put = (value) => {
          if (value === "" || !Number.isFinite(+value)) return;
          state[name] = Math.min(bounds.max, Math.max(bounds.min, Math.round(+value)));
          then();
          changed();
        };
        const range = html("input", { type: "range", oninput: () => put(slid(+range.value)) });
        const exact = html("input", { type: "number", class: log ? "rl-play-wide" : "", "aria-label": `${words}, exact`, oninput: () => put(exact.value), onchange: () => { exact.value = state[name]; } });
        return add(field(unit ? `${words} (${unit})` : words, range, exact), () => {
          for (const [key, value] of Object.entries({ min, max, step })) bounds[key] = typeof value === "function" ? value(state) : value;
          for (const key of ["min", "max", "step"]) {
            range.setAttribute(key, log ? { min: 0, max: 1000, step: 1 }[key] : bounds[key]);
            exact.setAttribute(key, key === "step" && (log || bounds.step > 1) ? "any" : bounds[key]);
          }
          range.value = slide(state[name]);
          if (log) range.setAttribute("aria-valuetext", P.prefixed(state[name], unit));
          if (document.activeElement !== exact) exact.value = state[name];
        });
      },
      choice(name, words, options, then = () => {}) {
        const select = html("select", { onchange: () => {
          state[name] = typeof state[name] === "number" ? Number(select.value) : select.value;
          then();
          changed();
        } }, ...options.map(([value, shown]) => html("option", { value }, shown)));
        const element = field(words, select);
        element.classList.toggle("rl-play-full", options.some(([, shown]) => shown.length > 24));
        return add(element, () => { select.value = state[name]; });
      },
      note(words) {
        const line = html("span", { class: "rl-play-note" });
        return add(line, () => { line.textContent = words(state); });
      },
      tries(words, options) {
        const buttons = options.map(([shown, values]) => html("button", { type: "button", onclick: () => { Object.assign(state, values); changed(); } }, shown));
        const mark = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", Object.entries(options[i][1]).every(([k, v]) => state[k] === v)));
        return add(html("div", { class: "rl-play-tries", role: "group", "aria-label": words }, html("span", {}, words), ...buttons), mark);
      },
    };
  };

  /* Lanes that can be switched on and off: one stop of the Tab key, arrows move, space switches. */
  P.laneSwitches = (active, toggle, focused, place) => {
    const cells = active.map((on, lane) => {
      const cell = svg("g", {
        role: "checkbox", tabindex: lane === focused ? 0 : -1, "aria-checked": on, "aria-label": `lane ${lane}`, "data-lane": lane, "data-of": lane, class: "rl-play-lane",
        onclick: () => toggle(lane),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1, Home: -lane, End: P.WARP - 1 - lane }[event.key];
          if (step !== undefined) cells[(lane + step + P.WARP) % P.WARP].focus();
          else if (event.key === " " || event.key === "Enter") toggle(lane);
          else return;
          event.preventDefault();
        },
      }, place(lane, on));
      cell.addEventListener("focus", () => cells.forEach((each) => each.setAttribute("tabindex", each === cell ? 0 : -1)));
      return cell;
    });
    return svg("g", { role: "group", "aria-label": "Active lanes: arrow keys move, space switches a lane" }, ...cells);
  };
  /* The condition under which exactly these lanes are active. */
  P.condition = (active) => {
    const on = active.flatMap((each, lane) => (each ? [lane] : []));
    if (on.length === P.WARP) return "lane < 32";
    if (on.length && on[on.length - 1] === on.length - 1) return `lane < ${on.length}`;
    return `0x${on.reduce((mask, lane) => mask + 2 ** lane, 0).toString(16)}u >> lane & 1`;
  };

  const read = (pairs, defaults) => {
    const state = { ...defaults };
    for (const [name, value] of pairs) {
      if (name in defaults) state[name] = typeof defaults[name] === "number" && Number.isFinite(+value) ? +value : value;
    }
    return state;
  };

  const start = (root) => {
    const kind = root.dataset.play, model = P.kinds[kind];
    if (!model) return;
    const link = new URLSearchParams(location.hash.slice(1));
    const mine = link.get("play") === kind && !start.taken;
    const state = read(mine ? link : Object.entries(root.dataset), model.defaults);
    if (mine) start.taken = true;
    let width = 0, waiting = false;
    const say = html("p", { class: "rl-play-say", role: "status", "aria-live": "polite", "aria-atomic": "true" });
    const picture = html("div", { class: "rl-play-picture" });
    const copy = html("button", { type: "button", class: "rl-play-link", onclick: async () => {
      const url = `${location.href.split("#")[0]}#${new URLSearchParams({ play: kind, ...state })}`;
      history.replaceState(null, "", url);
      try { await navigator.clipboard.writeText(url); copy.textContent = "Link copied"; } catch { copy.textContent = "Link in the address bar"; }
      setTimeout(() => { copy.textContent = "Copy link"; }, 2000);
    } }, "Copy link");
    const draw = () => {
      waiting = false;
      if (model.settle) model.settle(state);
      ui.show();
      let found;
      try {
        found = model.compute(state);
      } catch (error) {
        if (!(error instanceof P.ExpressionError)) throw error;
        const at = error.input, text = String(at ? state[at] : ""), p = error.position;
        say.className = "rl-play-say rl-play-error";
        say.replaceChildren(`${error.message[0].toUpperCase()}${error.message.slice(1)}${at ? ": " : "."}`,
          at ? html("code", {}, text.slice(0, p), html("mark", {}, text.slice(p, p + 1) || "\u00a0"), text.slice(p + 1)) : "");
        for (const input of root.querySelectorAll("[data-name]")) input.setAttribute("aria-invalid", input.dataset.name === at);
        picture.classList.add("rl-play-stale");
        return;
      }
      for (const input of root.querySelectorAll("[data-name]")) input.removeAttribute("aria-invalid");
      picture.classList.remove("rl-play-stale");
      say.className = "rl-play-say";
      const words = found.say, cut = words.search(/[.;,:] /) + 1 || words.length;
      if (say.textContent !== words) say.replaceChildren(html("strong", {}, words.slice(0, cut)), words.slice(cut));
      const focused = picture.contains(document.activeElement) && document.activeElement.dataset.lane;
      const drawn = model.draw(found, state, width, changed);
      const [w, h, ...parts] = drawn;
      picture.replaceChildren(svg("svg", { width: w, height: h, viewBox: `0 0 ${w} ${h}`, ...model.role(words) }, ...parts));
      if (focused) picture.querySelector(`[data-lane="${focused}"]`).focus();
    };
    const changed = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
    const ui = controls(state, changed);
    root.replaceChildren(
      html("p", { class: "rl-play-title" }, html("span", {}, model.title), copy), ...model.controls(ui, state, changed), say, picture,
      html("p", { class: "rl-play-key" }, ...model.key.map(([style, words]) => html("span", {}, html("i", { class: style }), words))));
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", `Playground: ${model.title}`);
    root.classList.add("rl-play-on");
    new ResizeObserver(([entry]) => {
      const wide = Math.min(760, Math.floor(entry.contentRect.width));
      if (wide > 0 && wide !== width) { width = wide; draw(); }
    }).observe(picture);
    /* Point at a lane to see only its bytes. */
    const point = (event) => {
      const at = event.target.closest && event.target.closest("[data-of]");
      const lanes = at && at.getAttribute("aria-checked") !== "false" ? at.dataset.of.split(" ") : [];
      for (const each of picture.querySelectorAll("[data-of]")) {
        each.classList.toggle("rl-play-dim", lanes.length > 0 && !each.dataset.of.split(" ").some((lane) => lanes.includes(lane)));
      }
    };
    for (const name of ["pointerover", "focusin", "pointerleave", "focusout"]) picture.addEventListener(name, point);
    if (mine) root.scrollIntoView({ block: "center" });
  };

  P.kinds = P.kinds || {};
  const all = () => document.querySelectorAll(".rl-play[data-play]").forEach(start);
  if (globalThis.document) document.addEventListener("DOMContentLoaded", all);
})(globalThis.RLPlay);

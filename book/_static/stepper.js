/* only where: data-stepper= */
// Steppers: every [data-stepper] gets its controls. The markup comes from climb/display/stepper/frame.py, which says
// what the data mean. Without this file a reader sees one step and the list of all sentences.
(() => {
  "use strict";
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const PAUSE = 1100; // milliseconds from step to step while it plays

  const short = (value) => String(+value.toFixed(2));

  // Cells "0+8*2 40": every second of 16 from 0 on, and 40, as strokes along the rows of a grid.
  function strokes(cells, [columns, x, y, pitch, down]) {
    let [out, next] = ["", -1];
    let from = 0;
    const all = cells.split(" ").filter(Boolean).flatMap((run) => {
      const [, first, count = 1, distance = 1] = run.match(/^(\d+)(?:\+(\d+))?(?:\*(\d+))?$/);
      return Array.from({ length: +count }, (_, n) => +first + n * distance);
    });
    const end = () => {
      if (next < 0) return;
      const [left, top] = [x + (from % columns) * pitch, y + Math.floor(from / columns) * down];
      out += `M${short(left)} ${short(top)}h${short((next - from) * pitch - 0.1)}`;
    };
    for (const cell of all.sort((a, b) => a - b)) {
      if (cell !== next || cell % columns === 0) {
        end();
        from = cell;
      }
      next = cell + 1;
    }
    end();
    return out;
  }

  function attach(root) {
    const data = JSON.parse(root.dataset.stepper);
    const svg = root.querySelector("svg");
    const parts = [...svg.querySelectorAll("[data-part]")];
    const sentences = [...root.querySelectorAll("ol li")].map((item) => item.textContent);
    const sentence = root.querySelector(".s-sentence");
    const controls = root.querySelector(".s-controls");
    const [slider, place] = [controls.querySelector("input"), controls.querySelector("output")];
    const [back, play, next] = ["back", "play", "next"].map((name) => controls.querySelector(`.s-${name}`));
    const title = root.getAttribute("aria-label");
    const last = sentences.length - 1;
    let at = data.at;
    let timer = 0;

    const state = (changes, step) => {
      while (changes[step] === 0) step -= 1; // 0: the same as in the step before
      return changes[step];
    };

    function fade(part) {
      if (still.matches || document.hidden) return;
      const ghost = part.cloneNode(false);
      ghost.removeAttribute("data-part");
      part.before(ghost);
      part.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 180, easing: "ease-out" });
      const leave = ghost.animate([{ opacity: 1 }, { opacity: 0 }], { duration: 180, easing: "ease-in" });
      leave.onfinish = leave.oncancel = () => ghost.remove();
    }

    function show(step) {
      at = Math.max(0, Math.min(last, step));
      parts.forEach((part, n) => {
        let value = state(data.parts[n], at);
        if (data.how[n] === 1) {
          part.setAttribute("class", `s-${value || "none"}`);
          return;
        }
        if (data.how[n]) value = strokes(value, data.how[n]);
        if (part.tagName === "text") {
          if (part.textContent !== value) part.textContent = value;
        } else if (part.getAttribute("d") !== value) {
          fade(part);
          part.setAttribute("d", value);
        }
      });
      if (data.lines) mark(data.lines[at]);
      slider.value = at + 1;
      slider.setAttribute("aria-valuetext", `Step ${at + 1} of ${last + 1}`);
      place.textContent = `${at + 1} / ${last + 1}`;
      back.disabled = at === 0;
      next.disabled = at === last;
      sentence.textContent = sentences[at];
      svg.setAttribute("aria-label", `${title}. Step ${at + 1} of ${last + 1}: ${sentences[at]}`);
    }

    function mark(lines) {
      const listing = root.querySelector(".s-listing");
      let [first, final] = [null, null];
      for (const line of listing.querySelectorAll("[data-line]")) {
        const now = lines.includes(Number(line.dataset.line));
        line.classList.toggle("s-now", now);
        if (now) [first, final] = [first || line, line];
      }
      if (first) listing.scrollTop = Math.max(0, (first.offsetTop + final.offsetTop - listing.clientHeight) / 2);
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      play.textContent = "▶ Play";
      play.setAttribute("aria-label", "Play");
      sentence.setAttribute("aria-live", "polite");
    }

    function start() {
      if (at === last) show(0);
      play.textContent = "❚❚ Pause";
      play.setAttribute("aria-label", "Pause");
      sentence.setAttribute("aria-live", "off"); // a screen reader would be cut off at every step
      timer = setInterval(() => {
        show(at + 1);
        if (at === last) stop();
      }, PAUSE);
    }

    const go = (step) => {
      stop();
      show(step);
    };
    back.addEventListener("click", () => go(at - 1));
    next.addEventListener("click", () => go(at + 1));
    play.addEventListener("click", () => (timer ? stop() : start()));
    slider.addEventListener("input", () => go(slider.value - 1));
    root.addEventListener("keydown", (event) => {
      const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      const elsewhere = event.target.closest("details, .s-listing") || event.altKey || event.ctrlKey || event.metaKey;
      if (target === undefined || elsewhere) return;
      event.preventDefault();
      event.stopPropagation(); // the theme's arrow keys turn the page
      go(target);
    });
    addEventListener("beforeprint", () => go(data.at));

    // The tallest sentence decides the height, so that nothing below moves from step to step.
    const reserve = () => {
      const now = sentence.textContent;
      sentence.style.minHeight = "";
      let height = 0;
      for (const one of sentences) {
        sentence.textContent = one;
        height = Math.max(height, sentence.offsetHeight);
      }
      sentence.textContent = now;
      sentence.style.minHeight = `${height}px`;
    };
    let width = 0;
    new ResizeObserver(() => {
      if (root.clientWidth !== width) {
        width = root.clientWidth;
        if (width) reserve();
      }
    }).observe(root);

    controls.hidden = false;
    show(0);
  }

  const all = () => document.querySelectorAll("[data-stepper]").forEach(attach);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();

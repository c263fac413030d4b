// Code boxes: long lines wrap visibly on a wide screen; on a phone a box that goes on says so and takes the keyboard.
// And one switch on the page unfolds all Python that is folded.
"use strict";

(() => {
  const NARROW = window.matchMedia("(max-width: 599.98px)");

  // The width of a character of this box, measured once for each font.
  const widths = new Map();
  const widthOf = box => {
    const style = getComputedStyle(box);
    const font = `${style.fontSize} ${style.fontFamily}`;
    if (!widths.has(font)) {
      const canvas = document.createElement("canvas").getContext("2d");
      canvas.font = font;
      widths.set(font, canvas.measureText("0".repeat(100)).width / 100);
    }
    return widths.get(font);
  };

  const columnsOf = box => {
    const style = getComputedStyle(box);
    return Math.floor((box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) / widthOf(box));
  };

  // The columns before the text of a line: its number or sign, and its indent.
  const indentOf = text => text.match(/^(?:\s*\d+  |[+-] )?\s*/)[0].length;

  const isLine = node =>
    node.nodeType === Node.ELEMENT_NODE && node.matches(".rl-add, .rl-del, .rl-same, .rl-gap, .rl-hang");

  // Give each line that is longer than `columns` an element of its own, which hangs its continuations below its start.
  // The line feed stays inside, so that copying gives the line as it is in the file.
  const hangLongLines = (box, columns) => {
    if (box.textContent.split("\n").every(line => line.length <= columns)) return;
    let line = [];
    const finish = () => {
      const text = line.map(node => node.textContent).join("");
      if (text.replace(/\n$/, "").length > columns) {
        const already = line.length === 1 && isLine(line[0]);
        const element = already ? line[0] : document.createElement("span");
        if (!already) {
          line[0].before(element);
          element.append(...line);
        }
        const hang = Math.min(indentOf(text) + 4, Math.floor(columns / 2));
        element.classList.add("rl-hang");
        element.style.setProperty("--rl-hang", `${hang}ch`);
      }
      line = [];
    };
    for (let node = box.firstChild; node; node = node.nextSibling) {
      if (node.nodeType === Node.TEXT_NODE) {
        const end = node.data.indexOf("\n");
        if (end >= 0 && end + 1 < node.data.length) node.splitText(end + 1);
      }
      line.push(node);
      if (node.textContent.endsWith("\n") || isLine(node)) {
        const next = node.nextSibling;
        finish();
        if (!next) break;
        node = next.previousSibling;
      }
    }
    if (line.length) finish();
  };

  // What a box is, for those who hear it.
  const labelOf = box => {
    if (box.closest(".rl-diff")) return "Changes, wider than the screen";
    if (box.closest(".cell_output")) return box.closest(".rl-source") ? "Listing, wider than the screen" : "Output, wider than the screen";
    return "Code, wider than the screen";
  };

  const hint = box => {
    const hidden = box.scrollWidth - box.clientWidth;
    const scrolls = hidden > 1;
    box.classList.toggle("rl-goes-on", scrolls && box.scrollLeft < hidden - 1);
    box.classList.toggle("rl-came-from", scrolls && box.scrollLeft > 1);
    if (scrolls) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", labelOf(box));
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  };

  const fit = box => {
    if (!box.clientWidth) return; // folded: the observer calls again when it is unfolded
    if (!NARROW.matches) hangLongLines(box, columnsOf(box));
    hint(box);
  };

  const watchBoxes = () => {
    const observer = new ResizeObserver(entries => entries.forEach(entry => fit(entry.target)));
    for (const box of document.querySelectorAll(".bd-article :is(.highlight, .rl-diff) pre")) {
      observer.observe(box);
      box.addEventListener("scroll", () => hint(box), { passive: true });
    }
  };

  // One switch for all Python that a page folds, remembered for all pages.
  const KEY = "climb-all-python";
  const remembered = () => {
    try {
      return localStorage.getItem(KEY) === "shown";
    } catch {
      return false; // a browser may forbid storage
    }
  };

  const addSwitch = () => {
    const folded = [...document.querySelectorAll(".bd-article details.hide.above-input")];
    const heading = document.querySelector(".bd-article h1");
    if (!folded.length || !heading) return;
    const label = document.createElement("label");
    label.className = "rl-python-switch";
    label.innerHTML = '<input type="checkbox" role="switch"> <span>Show all Python</span>';
    const box = label.firstChild;
    const unfold = () => folded.forEach(details => (details.open = box.checked));
    box.checked = remembered();
    if (box.checked) unfold();
    box.addEventListener("change", () => {
      unfold();
      try {
        localStorage.setItem(KEY, box.checked ? "shown" : "folded");
      } catch {
        // the switch then holds for this page
      }
    });
    heading.after(label);
  };

  const start = () => {
    addSwitch();
    watchBoxes();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();

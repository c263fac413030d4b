/* Tables that are wider than the screen: they can be scrolled by keyboard, and fade at the edge while there is more.
 * Also opens what is folded when the page is printed. */
(() => {
  const BOXES = ".pst-scrollable-table-container, .cell_output .output.text_html, div.math";

  const over = (box) => box.scrollWidth > box.clientWidth + 1;

  function mark(box) {
    for (const smaller of ["rl-tight", "rl-tighter"]) if (over(box)) box.classList.add(smaller);
    const wider = over(box);
    box.classList.toggle("rl-more-right", wider && box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    box.classList.toggle("rl-more-left", wider && box.scrollLeft > 1);
    if (wider && box.querySelector("table, math")) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `${box.querySelector("table") ? "Table" : "Formula"} that scrolls sideways`);
    } else if (box.getAttribute("role") === "group") {
      box.removeAttribute("role");
      box.removeAttribute("aria-label");
    }
  }

  const boxes = [...document.querySelectorAll(BOXES)];
  const sizes = new ResizeObserver((changes) => changes.forEach((change) => mark(change.target)));
  for (const box of boxes) {
    box.addEventListener("scroll", () => mark(box), { passive: true });
    sizes.observe(box);
    mark(box);
  }

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article .admonition details:not([open])")];
    for (const one of opened) one.open = true;
    for (const picture of document.querySelectorAll("img[loading=lazy]")) picture.loading = "eager";
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();

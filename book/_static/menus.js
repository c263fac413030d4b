/* Menus of the page header: opened by a click or a key, closed by Escape, a click elsewhere, or leaving them by Tab. */
(() => {
  const openers = () => document.querySelectorAll('[data-bs-toggle="dropdown"]');
  const menuOf = (opener) => opener.parentElement.querySelector(".dropdown-menu");

  function set(opener, open) {
    opener.setAttribute("aria-expanded", String(open));
    menuOf(opener)?.classList.toggle("show", open);
  }

  document.addEventListener("click", (event) => {
    const clicked = event.target.closest('[data-bs-toggle="dropdown"]');
    for (const opener of openers()) {
      set(opener, opener === clicked && opener.getAttribute("aria-expanded") !== "true");
    }
  });

  document.addEventListener("keydown", (event) => {
    for (const opener of openers()) {
      const menu = menuOf(opener);
      if (!menu) continue;
      const inside = opener.parentElement.contains(document.activeElement);
      const entries = [...menu.querySelectorAll("a, button")];
      if (event.key === "Escape" && menu.classList.contains("show")) {
        set(opener, false);
        opener.focus();
      } else if (inside && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        event.preventDefault();
        set(opener, true);
        const step = event.key === "ArrowDown" ? 1 : -1;
        const at = entries.indexOf(document.activeElement);
        entries[(at + step + entries.length) % entries.length]?.focus();
      }
    }
  });

  document.addEventListener("focusin", (event) => {
    for (const opener of openers()) {
      if (!opener.parentElement.contains(event.target)) set(opener, false);
    }
  });
})();

/* only where: std-term */
/* Cards for terms: pointing at a link to the glossary, focusing it, or a first tap shows the definition beside it.
 * Escape, leaving, a tap elsewhere or scrolling away closes it; a second tap follows the link. */
(() => {
  const LINKS = 'a[href*="#term-"]';
  const card = document.createElement("div");
  card.id = "term-card";
  card.className = "rl-term-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;

  let shown = null;
  let timer = 0;
  let loading = null;

  function load() {
    loading ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = `${document.documentElement.dataset.content_root}_static/term-definitions.js`;
      script.onload = () => done(window.termDefinitions);
      script.onerror = () => done({});
      document.head.append(script);
    });
    return loading;
  }

  function place(link) {
    const edge = 8;
    const around = link.getClientRects()[0] ?? link.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    card.style.maxWidth = `${Math.min(416, wide - 2 * edge)}px`;
    card.style.left = "0";
    card.style.left = `${Math.max(edge, Math.min(around.left, wide - card.offsetWidth - edge))}px`;
    const below = around.bottom + 4;
    const fits = below + card.offsetHeight <= window.innerHeight - edge;
    card.style.top = `${fits ? below : Math.max(edge, around.top - card.offsetHeight - 4)}px`;
  }

  async function show(link) {
    clearTimeout(timer);
    if (shown === link) return;
    hide();
    shown = link;
    const all = await load();
    const entry = all[decodeURIComponent(link.hash.slice(1))];
    if (shown !== link || !entry) return;
    const name = document.createElement("strong");
    name.textContent = entry[0];
    const text = document.createElement("span");
    text.innerHTML = entry[1]; // written by the build, from the glossary's own page
    card.replaceChildren(name, text);
    if (!card.isConnected) document.body.append(card);
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    place(link);
  }

  function hide() {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    card.hidden = true;
  }

  const termOf = (event) => event.target.closest?.(LINKS);
  const later = (action, wait) => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const link = termOf(event);
    if (link) later(() => show(link), 120);
    else if (card.contains(event.target)) clearTimeout(timer);
    else if (shown && shown !== document.activeElement) later(hide, 200);
    else if (!shown) clearTimeout(timer);
  });
  document.addEventListener("focusin", (event) => {
    const link = termOf(event);
    if (link && link.matches(":focus-visible")) show(link);
    else if (shown) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && shown) hide();
  });

  let kind = "mouse";
  document.addEventListener("pointerdown", (event) => {
    kind = event.pointerType;
    if (shown && !card.contains(event.target) && termOf(event) !== shown) hide();
  }, true);
  document.addEventListener("click", (event) => {
    const link = termOf(event);
    if (link && kind === "touch" && shown !== link) {
      event.preventDefault();
      show(link);
    }
  });
  document.addEventListener("scroll", () => shown && !card.hidden && place(shown), { passive: true, capture: true });
})();

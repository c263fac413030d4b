/* only where: rl-break */
// "Break it": one box of a kernel's source, edits to choose from, and what each of them does.
//
// A chapter's HTML holds the source once, and each edit folded (<details>): its changed lines and its outcome. This
// script shows one edit at a time: in the source, with the changed lines marked, and its outcome below.
(() => {
  "use strict";

  const make = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  };

  /** The changed lines of an edit: numbers of deleted lines, inserted lines by the line that they follow, launches. */
  function changesOf(edit) {
    const changes = { deleted: new Set(), inserted: new Map(), launch: [] };
    for (const line of edit.querySelectorAll(".rl-break-change > *")) {
      const at = line.dataset.n;
      const html = line.innerHTML.slice(2);
      if (line.localName === "del") {
        changes.deleted.add(Number(at));
      } else if (at === undefined) {
        changes.launch.push(html);
      } else {
        const follows = Number(at);
        changes.inserted.set(follows, [...(changes.inserted.get(follows) ?? []), html]);
      }
    }
    return changes;
  }

  /** The lines of the source that are shown: number (0 for a gap) and HTML. */
  function linesOf(code) {
    return code.innerHTML.split("\n").map((line) => {
      const end = line.indexOf("</b>");
      return { number: Number.parseInt(line.slice(3, end), 10) || 0, html: line.slice(end + 6) };
    });
  }

  function row(kind, number, width, html) {
    const sign = { "rl-ins": "+", "rl-del": "\u2212", "rl-gap": " " }[kind] ?? " ";
    const label = kind === "rl-gap" ? "\u22ef".padStart(width) : String(number || "").padStart(width);
    return `<span class="rl-row ${kind}"><b>${label} ${sign}</b> ${html}</span>`;
  }

  /** The source with an edit: deleted lines stay, marked, and inserted ones follow them. */
  function edited(lines, changes, hit, width) {
    let shift = 0;
    let last = -1;
    const rows = [];
    const insert = (follows) => {
      for (const html of changes.inserted.get(follows) ?? []) {
        shift += 1;
        const number = follows + shift;
        rows.push(row(`rl-ins${number === hit ? " rl-hit" : ""}`, number, width, html));
      }
    };
    // What a gap hides may be changed too, in an edit that the author shows only in part: it still moves the numbers.
    const pass = (number) => {
      if (changes.deleted.has(number)) shift -= 1;
      shift += (changes.inserted.get(number) ?? []).length;
    };
    for (const line of lines) {
      if (!line.number) {
        rows.push(row("rl-gap", 0, width, ""));
        continue;
      }
      if (last < 0) {
        for (let n = 0; n < line.number; n += 1) pass(n);
      } else {
        for (let n = last + 1; n < line.number; n += 1) pass(n);
      }
      last = line.number;
      if (changes.deleted.has(line.number)) {
        shift -= 1;
        rows.push(row("rl-del", 0, width, line.html));
      } else {
        const number = line.number + shift;
        rows.push(row(number === hit ? "rl-hit" : "", number, width, line.html));
      }
      insert(line.number);
    }
    return rows.join("");
  }

  function show(box, edit) {
    const changes = changesOf(edit);
    const hit = Number(edit.dataset.line ?? 0);
    box.code.innerHTML = edited(box.lines, changes, hit, box.width);
    const launches = box.launchHtml.split("\n");
    const rowsOf = (kind, htmls) => htmls.map((html) => row(kind, 0, 1, html)).join("");
    box.launch.innerHTML = changes.launch.length
      ? rowsOf("rl-del", launches) + rowsOf("rl-ins", changes.launch)
      : rowsOf("", launches);
    const parts = [...edit.children].filter((part) => !part.matches("summary, .rl-break-change"));
    const shown = parts.map((part) => part.cloneNode(true));
    if (box.picture && edit !== box.edits[0] && edit.querySelector("table, .rl-right") && !edit.querySelector("svg")) {
      const same = make("p", "rl-break-same", "The picture is the same as without the edit:");
      shown.push(same, box.picture.cloneNode(true));
    }
    box.outcome.replaceChildren(...shown);
    const first = box.code.querySelector(".rl-del, .rl-ins") ?? box.code.querySelector(".rl-hit");
    const room = box.code.clientHeight;
    if (first) box.code.scrollTop = Math.max(0, first.offsetTop - box.code.offsetTop - room / 3);
  }

  function build(root, index) {
    const edits = [...root.querySelectorAll("details.rl-break-edit")];
    const code = root.querySelector(".rl-break-code");
    const launch = root.querySelector(".rl-break-launch");
    if (!code || !launch || edits.length < 2) return;
    const lines = linesOf(code);
    const width = String(Math.max(...lines.map((line) => line.number)) + 9).length;
    const outcome = make("div", "rl-break-outcome");
    outcome.setAttribute("aria-live", "polite");
    outcome.setAttribute("aria-atomic", "true");
    const picture = edits[0].querySelector("svg");
    const box = { code, launch, lines, width, outcome, edits, picture, launchHtml: launch.innerHTML };
    code.tabIndex = 0;
    code.setAttribute("role", "group");
    code.setAttribute("aria-label", "Source with the chosen edit");

    const choices = make("fieldset", "rl-break-choices");
    choices.append(make("legend", "", "Break it: choose an edit"));
    edits.forEach((edit, number) => {
      const label = make("label");
      const input = make("input");
      input.type = "radio";
      input.name = `rl-break-${index}`;
      input.checked = number === 0;
      input.addEventListener("change", () => show(box, edit));
      label.append(input, make("span", "", edit.querySelector("summary").textContent));
      choices.append(label);
      edit.hidden = true;
    });
    root.append(choices, outcome);
    root.classList.add("rl-break-box");
    show(box, edits[0]);
  }

  const start = () => document.querySelectorAll(".rl-break").forEach(build);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();

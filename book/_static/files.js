// Links on the names of files: each element with data-file="kernels/..." gets one to that file in the repository. The
// repository's address is in <meta name="rl-files">; a book without an address does not load this script.
//
// An element of text becomes the content of the link; in a box, the element .rl-file does, or a line is added below.

const TEXT = new Set(["CODE", "SPAN", "B", "EM", "STRONG"]);

function link(address, path) {
  const made = document.createElement("a");
  made.href = address + path.split("/").map(encodeURIComponent).join("/");
  made.className = "reference external rl-file-link";
  made.title = `${path} in the repository`;
  return made;
}

function wrap(element, address, path) {
  if (element.closest("a")) return;
  const made = link(address, path);
  element.replaceWith(made);
  made.append(element);
}

function linkFile(element, address) {
  const path = element.dataset.file;
  const name = element.querySelector(".rl-file");
  if (element.tagName === "A") {
    element.href = link(address, path).href;
    element.hidden = false;
  } else if (TEXT.has(element.tagName)) {
    wrap(element, address, path);
  } else if (name) {
    wrap(name, address, path);
  } else {
    const line = document.createElement("p");
    line.className = "rl-file-line";
    const made = link(address, path);
    made.textContent = path;
    line.append(made);
    element.after(line);
  }
}

function linkFiles() {
  const address = document.querySelector('meta[name="rl-files"]')?.content;
  if (!address) return;
  for (const element of document.querySelectorAll("[data-file]")) linkFile(element, address);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", linkFiles);
else linkFiles();

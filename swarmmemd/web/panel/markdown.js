// Markdown to nodes. Foreign text only ever becomes text nodes: no markup of it is believed, whatever it holds.

const LIMIT = 200_000;
const SAFE = /^(https?:|mailto:)/i;
// Control characters, and those that turn the direction of writing around: shown, not obeyed.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
// `__init__.py` is a name, no emphasis. Bounded, so that a text of nothing but openings takes no longer than another.
const INLINE = new RegExp([
  "`(?<code>[^`\\n]{1,2000})`",
  "\\*\\*(?<strong>[^*\\n]{1,2000})\\*\\*",
  "(?<![^\\s(])__(?<strong2>[^_\\n]{1,2000})__(?![^\\s),;:!?])",
  "(?<![\\w*])\\*(?<weak>[^*\\s][^*\\n]{0,1000})\\*(?![\\w*])",
  "(?<![^\\s(])_(?<weak2>[^_\\s][^_\\n]{0,1000})_(?![^\\s).,;:!?])",
  "\\[(?<label>[^\\]\\n]{1,500})\\]\\((?<target>[^()\\s]{1,1000})\\)",
  "(?<![\\w/])(?<address>https?://[^\\s<>()\\[\\]\"'`*|]{0,1000}[^\\s<>()\\[\\]\"'`*|.,;:!?])",
].join("|"), "g");

export const clean = (text) => String(text ?? "").replace(HARMFUL, "\ufffd");

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const link = (target, label) => el("a", { href: target, rel: "noopener noreferrer", target: "_blank" }, label);

function inline(parent, text) {
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parent.append(text.slice(at, found.index));
    const [whole] = found;
    const { code, strong, strong2, weak, weak2, label, target, address } = found.groups;
    if (code) parent.append(el("code", {}, code));
    else if (strong ?? strong2) parent.append(inline(el("strong"), strong ?? strong2));
    else if (weak ?? weak2) parent.append(inline(el("em"), weak ?? weak2));
    else if (address) parent.append(link(address, address));
    else if (SAFE.test(target)) parent.append(link(target, label));
    else parent.append(whole);
    at = found.index + whole.length;
  }
  parent.append(text.slice(at));
  return parent;
}

function item(text) {
  const [, box, what] = /^\[([ xX])\] (.*)$/.exec(text) ?? [null, null, text];
  if (!box) return inline(el("li"), what);
  const done = box !== " ";
  return inline(el("li", {}, el("span", { role: "img", "aria-label": done ? "done" : "open" }, done ? "\u2611" : "\u2610"), " "), what);
}

const cells = (line) => line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

const isTable = (lines, at) => lines[at].includes("|") && DIVIDER.test(lines[at + 1] ?? "") && cells(lines[at]).length === cells(lines[at + 1]).length;

// A table: each row has the cells that the heading has.
function table(lines, from) {
  const heads = cells(lines[from]);
  let at = from + 2;
  const rows = [];
  for (; at < lines.length && lines[at].includes("|"); at += 1) {
    const given = cells(lines[at]);
    rows.push(el("tr", {}, ...heads.map((_, n) => inline(el("td"), given[n] ?? ""))));
  }
  const head = el("thead", {}, el("tr", {}, ...heads.map((text) => inline(el("th", { scope: "col" }), text))));
  return [el("div", { class: "table", tabindex: "0" }, el("table", {}, head, el("tbody", {}, ...rows))), at];
}

// One level of list items; deeper ones are parts of the item above them.
function list(lines, from, indent) {
  const ordered = /^\s*\d+[.)] /.test(lines[from]);
  const node = el(ordered ? "ol" : "ul");
  let at = from;
  while (at < lines.length) {
    const found = /^(\s*)(?:[-*+]|\d+[.)]) (.*)$/.exec(lines[at]);
    if (!found || found[1].length < indent) break;
    if (found[1].length > indent && node.lastChild && found[1].length < 40) {
      const [below, next] = list(lines, at, found[1].length);
      node.lastChild.append(below);
      at = next;
      continue;
    }
    node.append(item(found[2]));
    at += 1;
    while (at < lines.length && /^\s{2,}\S/.test(lines[at]) && !/^\s*(?:[-*+]|\d+[.)]) /.test(lines[at])) {
      inline(node.lastChild, " " + lines[at].trim());
      at += 1;
    }
  }
  return [node, at];
}

// The text as a fragment. Headings begin at level `top`, so that the page keeps one outline.
export function render(source, top = 3) {
  const whole = clean(source.replace(/\r\n?/g, "\n"));
  const lines = whole.slice(0, LIMIT).split("\n");
  const out = document.createDocumentFragment();
  let words = [];
  const flush = () => {
    if (words.length) out.append(inline(el("p"), words.join(" ")));
    words = [];
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    const fence = /^(```+|~~~+)/.exec(line);
    if (fence) {
      flush();
      let end = at + 1;
      while (end < lines.length && !lines[end].startsWith(fence[1])) end += 1;
      out.append(el("pre", { tabindex: "0" }, el("code", {}, lines.slice(at + 1, end).join("\n"))));
      at = end + 1;
    } else if (heading) {
      flush();
      out.append(inline(el(`h${Math.min(top + heading[1].length - 1, 6)}`), heading[2]));
      at += 1;
    } else if (/^\s{0,8}(?:[-*+]|\d+[.)]) /.test(line)) {
      flush();
      const [node, next] = list(lines, at, /^\s*/.exec(line)[0].length);
      out.append(node);
      at = next;
    } else if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      flush();
      out.append(el("hr"));
      at += 1;
    } else if (isTable(lines, at)) {
      flush();
      const [node, next] = table(lines, at);
      out.append(node);
      at = next;
    } else if (/^>/.test(line)) {
      flush();
      let end = at;
      while (end < lines.length && lines[end].startsWith(">")) end += 1;
      const quoted = lines.slice(at, end).map((one) => one.replace(/^> ?/, ""));
      out.append(el("blockquote", {}, inline(el("p"), quoted.join(" "))));
      at = end;
    } else {
      if (line.trim()) words.push(line.trim());
      else flush();
      at += 1;
    }
  }
  flush();
  if (whole.length > LIMIT) out.append(el("p", { class: "soft" }, `Only the first ${LIMIT} characters are shown.`));
  return out;
}

// Markdown to nodes. Foreign text only ever becomes text nodes: no markup of it is believed, whatever it holds.

const LIMIT = 200_000;
const SAFE = /^(https?:|mailto:)/i;
// Control characters, and those that turn the direction of writing around: shown, not obeyed.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
// Bounded, so that a text of nothing but openings takes no longer than another.
const INLINE = /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,1000})\*(?![\w*])|\[([^\]\n]{1,500})\]\(([^()\s]{1,1000})\)/g;

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

function inline(parent, text) {
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parent.append(text.slice(at, found.index));
    const [whole, code, strong, weak, label, target] = found;
    if (code !== undefined) parent.append(el("code", {}, code));
    else if (strong !== undefined) parent.append(inline(el("strong"), strong));
    else if (weak !== undefined) parent.append(inline(el("em"), weak));
    else if (SAFE.test(target)) parent.append(el("a", { href: target, rel: "noopener noreferrer", target: "_blank" }, label));
    else parent.append(whole);
    at = found.index + whole.length;
  }
  parent.append(text.slice(at));
  return parent;
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
    node.append(inline(el("li"), found[2]));
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

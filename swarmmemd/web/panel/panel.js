// The memory panel: cards from /api/workers, the stream from /api/events, pages from /api/swarm-memory.
import { clean, el, render } from "/markdown.js";

const $ = (id) => document.getElementById(id);
const ORDER = ["blocked", "review", "executing", "planning", "complete"];
const SHOWN_EVENTS = 100;
const NOTHING = {
  mission: "No mission yet. A summary is written with the first dispatch.",
  handoff: "No handoff yet. One is written when the worker hands off, or when its context is renewed.",
  episodic: "Nothing happened yet. Each event of a day becomes an entry here.",
  profile: "No profile files yet. They are made from the roster.",
};

const ask = async (path) => {
  const answer = await fetch(path, { headers: { Accept: "application/json" } })
    .catch(() => { throw new Error("there is no connection"); });
  const content = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(content.error ?? answer.statusText), { code: answer.status });
  return content;
};

// Soon after it is asked for, and never twice at once: what is asked for all the time is done all the time.
const soon = (work, wait) => {
  let due = false;
  let busy = false;
  const run = async () => {
    busy = true;
    while (due) {
      await new Promise((done) => setTimeout(done, wait));
      due = false;
      await work();
    }
    busy = false;
  };
  return () => {
    due = true;
    if (!busy) run();
  };
};

const short = (path) => clean(path).split("/").slice(-4).join("/");

// Time

const SPANS = [[60, "second"], [60, "minute"], [24, "hour"], [7, "day"], [Infinity, "week"]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });

function age(moment) {
  let count = Math.max((Date.now() - Date.parse(moment)) / 1000, 0);
  if (count < 5) return "just now";
  for (const [most, name] of SPANS) {
    if (count < most) return words.format(-Math.floor(count), name);
    count /= most;
  }
  return "";
}

const stamp = (moment) => el("time", { datetime: moment, title: new Date(moment).toLocaleString() }, age(moment));
const refreshAges = () => document.querySelectorAll("time").forEach((node) => { node.textContent = age(node.dateTime); });

// Cards

const cards = new Map();
let known = [];

function card(id) {
  const parts = {
    name: el("button", { type: "button", class: "open", dir: "auto", onclick: () => { location.hash = `worker=${id}`; } }),
    status: el("span", { class: "chip" }), about: el("p", { class: "soft", dir: "auto" }), title: el("p", { class: "title", dir: "auto" }),
    mission: el("p", { class: "id" }), blockers: el("div", { class: "blockers" }), next: el("p", { class: "next" }),
    last: el("p", { class: "last" }),
  };
  const root = el("article", { class: "card", "data-worker": id },
    el("div", { class: "row" }, el("h3", {}, parts.name), parts.status), parts.about, parts.title, parts.mission,
    parts.blockers, parts.next, parts.last);
  return { root, ...parts };
}

const put = (node, ...children) => {
  node.replaceChildren(...children.filter(Boolean));
  node.hidden = !node.hasChildNodes();
};

function show(one) {
  if (!cards.has(one.workerId)) cards.set(one.workerId, card(one.workerId));
  const its = cards.get(one.workerId);
  const told = JSON.stringify(one);
  if (its.told === told) return;
  its.told = told;
  its.root.dataset.status = one.status ?? "none";
  its.name.textContent = clean(one.name);
  its.status.textContent = one.status ?? "no mission";
  const about = [one.name === one.workerId ? null : one.workerId, one.role, one.specialty].filter(Boolean);
  put(its.about, about.length ? clean(about.join(" · ")) : null);
  put(its.title, one.title ? clean(one.title) : null);
  put(its.mission, one.missionId);
  put(its.blockers, ...(one.blockers.length
    ? [el("strong", {}, "Blocked by"), el("ul", {}, ...one.blockers.map((text) => el("li", { dir: "auto" }, clean(text))))] : []));
  put(its.next, ...(one.nextAction && one.status !== "complete"
    ? [el("span", { class: "soft" }, "Next: "), el("bdi", {}, clean(one.nextAction))] : []));
  const last = one.lastEvent;
  put(its.last, ...(last
    ? [el("span", { class: "kind" }, last.type), " ", stamp(last.at), el("span", { class: "what", dir: "auto" }, clean(last.summary))]
    : [el("span", { class: "soft" }, "Nothing recorded yet")]));
}

const alphabet = new Intl.Collator("en", { numeric: true });
const rank = (one) => (ORDER.indexOf(one.status) + ORDER.length + 1) % (ORDER.length + 1);

async function refresh() {
  let content;
  try {
    content = await ask("/api/workers");
  } catch (error) {
    if (error.code === 401) tell("Your key is no longer good. Open a new link: swarmmemd serve --link");
    else if (!known.length) said("workers-said", "The memory cannot be read right now. It is tried again.");
    return;
  }
  known = content.workers.sort((a, b) => rank(a) - rank(b) || alphabet.compare(a.name, b.name));
  known.forEach(show);
  const ids = known.map((one) => one.workerId);
  for (const [id, its] of cards) if (!ids.includes(id)) { its.root.remove(); cards.delete(id); }
  const held = document.activeElement;
  const now = [...$("cards").children].map((node) => node.dataset.worker);
  if (now.join() !== ids.join()) $("cards").replaceChildren(...ids.map((id) => cards.get(id).root));
  if (held !== document.activeElement && held.isConnected) held.focus({ preventScroll: true });
  said("workers-said", known.length ? "" : "No workers yet. A worker appears here when its profile holds a runtime.json, or when swarm.yaml names it.");
  const counted = ORDER.map((word) => [known.filter((one) => one.status === word).length, word]).filter(([n]) => n);
  $("tally").textContent = counted.map(([n, word]) => `${n} ${word}`).join(" · ");
  follow();
  tell(content.running ? "" : "The daemon is not running. This is the memory as it was left; nothing new is recorded until it starts: swarmmemd run");
}

const said = (id, text) => { $(id).textContent = text; $(id).hidden = !text; };
function tell(text) {
  if ($("notice").textContent !== text) $("notice").textContent = text;
  $("notice").hidden = !text;
}

const refreshSoon = soon(refresh, 250);

// The stream

let source = null;
let lastId = null;
let paused = false;
let waiting = [];
let missed = 0;

function connect() {
  source?.close();
  source = new EventSource(lastId === null ? "/api/events?recent=30" : `/api/events?after=${lastId}`);
  source.onopen = () => { linked("live", "Live"); refreshSoon(); reopenSoon(); };
  source.onmessage = (message) => {
    lastId = message.lastEventId;
    const event = JSON.parse(message.data);
    if (paused) {
      waiting = [...waiting, event].slice(-SHOWN_EVENTS);
      missed += 1;
      $("pause").textContent = `Go on (${missed} new)`;
    } else {
      add(event);
    }
    refreshSoon();
    if (event.workerId === opened?.workerId) reopenSoon();
  };
  source.onerror = () => {
    linked("lost", "Disconnected. Trying again…");
    // A refusal ends an EventSource for good; a lost connection it takes up again by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
    refreshSoon();
  };
}

function linked(state, text) {
  $("link").dataset.state = state;
  if ($("link-word").textContent !== text) $("link-word").textContent = text;
}

function add(event) {
  said("stream-said", "");
  const state = event.event?.state && event.event.state !== event.type.toUpperCase() ? ` ${event.event.state}` : "";
  $("events").prepend(el("li", { "data-type": event.type, "data-seq": event.seq },
    el("p", { class: "head" }, el("span", { class: "kind" }, event.type + state), " ", event.workerId, " ", stamp(event.at)),
    el("p", { class: "what", dir: "auto" }, clean(event.summary)),
    event.missionId ? el("p", { class: "id" }, event.missionId) : null));
  while ($("events").children.length > SHOWN_EVENTS) $("events").lastChild.remove();
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  $("pause").textContent = paused ? "Go on" : "Pause";
  if (paused) return;
  waiting.forEach(add);
  waiting = [];
  missed = 0;
});

// Search

const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

// The text with the query's words marked. Folding can change lengths: then nothing is marked, rather than the wrong piece.
function marked(text, query) {
  const asked = [...new Set(fold(query).match(/[\p{L}\p{N}]+/gu) ?? [])];
  const folded = fold(text);
  if (!asked.length || folded.length !== text.length) return [text];
  const out = [];
  let at = 0;
  const unspaced = /[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]/;
  const pattern = asked.map((word, n) => (unspaced.test(word) ? word : `(?<![\\p{L}\\p{N}])${word}${n === asked.length - 1 ? "[\\p{L}\\p{N}]*" : "(?![\\p{L}\\p{N}])"}`));
  for (const found of folded.matchAll(new RegExp(pattern.join("|"), "gu"))) {
    out.push(text.slice(at, found.index), el("mark", {}, text.slice(found.index, found.index + found[0].length)));
    at = found.index + found[0].length;
  }
  return [...out, text.slice(at)];
}

let asking = 0;
async function search() {
  const query = $("query").value.trim();
  const turn = ++asking;
  if (!query) return closeSearch();
  $("found").hidden = false;
  said("found-said", "Searching…");
  try {
    const content = await ask(`/api/swarm-memory/search?scope=all&limit=50&query=${encodeURIComponent(query)}`);
    if (turn !== asking) return;
    $("hits").replaceChildren(...content.results.map((hit) => result(hit, query)));
    const count = content.results.length;
    said("found-said", count ? `${count === 50 ? "The best 50 hits" : count === 1 ? "One hit" : `${count} hits`} for “${query}”` : `Nothing remembered holds “${query}”.`);
  } catch (error) {
    if (turn === asking) said("found-said", `The search failed: ${clean(error.message)}`);
  }
}

function result(hit, query) {
  const text = marked(clean(hit.snippet), query);
  const where = `${short(hit.path)}:${hit.line}`;
  const whose = known.some((one) => one.workerId === hit.workerId)
    ? el("a", { href: `#worker=${hit.workerId}` }, hit.workerId) : el("b", {}, hit.workerId ?? "shared");
  return el("li", {}, el("p", { class: "head" }, whose, " ", hit.type ? el("span", { class: "kind" }, hit.type) : null, " ", stamp(hit.at)),
    el("p", { class: "what", dir: "auto" }, ...text), el("p", { class: "id", title: clean(hit.path) }, where));
}

function closeSearch() {
  asking += 1;
  $("found").hidden = true;
  $("hits").replaceChildren();
  $("query").value = "";
}

$("search").addEventListener("submit", (event) => { event.preventDefault(); search(); });
$("query").addEventListener("input", soon(search, 250));
$("query").addEventListener("keydown", (event) => { if (event.key === "Escape") closeSearch(); });
$("found-close").addEventListener("click", () => { closeSearch(); $("query").focus(); });

// One worker's memory

const BLOCKS = "p, ul, ol, blockquote, h3, h4, h5, h6, th, td";
let opened = null;
let kind = "mission";
let shown = "";

// A file as rendered Markdown; each part of it begins on the side where its writing begins.
function paper(file) {
  const text = render(file.content);
  for (const block of text.querySelectorAll(BLOCKS)) block.dir = "auto";
  return el("section", { class: "paper" }, el("p", { class: "id", title: clean(file.path) }, short(file.path)), text);
}

const tabs = [...$("tabs").children];

async function openPage(fresh) {
  if (!opened) return;
  const its = opened;
  for (const tab of tabs) {
    const chosen = tab.dataset.kind === kind;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  $("page").setAttribute("aria-labelledby", `tab-${kind}`);
  if (fresh) $("page").replaceChildren(el("p", { class: "said" }, "Reading…"));
  const asked = new URLSearchParams({ workerId: its.workerId, kind });
  if (its.missionId && kind === "mission") asked.set("missionId", its.missionId);
  const wanted = kind;
  const { files, error } = await ask(`/api/swarm-memory?${asked}`).catch((error) => ({ error }));
  if (its.workerId !== opened?.workerId || its.missionId !== opened.missionId || wanted !== kind) return;
  if (error && !fresh) return; // what somebody is reading stays
  const pages = files?.filter((file) => file.name.endsWith(".md") && (kind !== "mission" || file.name === "SUMMARY.md"));
  const now = error ? `It cannot be read right now: ${clean(error.message)}` : JSON.stringify(pages);
  if (now === shown && !fresh) return; // what somebody has selected stays so
  shown = now;
  const at = $("page").scrollTop;
  if (pages?.length) $("page").replaceChildren(...pages.map(paper));
  else $("page").replaceChildren(el("p", { class: "said" }, error ? now : kind === "mission" && its.missionId ? "The summary of this mission is not written yet." : NOTHING[kind]));
  $("page").scrollTop = fresh ? 0 : at;
}

const reopenSoon = soon(() => openPage(false), 400);

function choose(tab) {
  kind = tab.dataset.kind;
  tab.focus();
  openPage(true);
}

for (const [n, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = step ? (n + step + tabs.length) % tabs.length : { Home: 0, End: tabs.length - 1 }[event.key];
    if (to !== undefined) { event.preventDefault(); choose(tabs[to]); }
  });
}

const named = () => known.find((one) => one.workerId === new URLSearchParams(location.hash.slice(1)).get("worker")) ?? null;

function head() {
  $("sheet-title").textContent = clean(opened.name);
  const about = [opened.title ? el("bdi", {}, clean(opened.title)) : null, opened.status].filter(Boolean);
  $("sheet-about").replaceChildren(...(about.length === 2 ? [about[0], " · ", about[1]] : about.length ? about : ["no mission"]));
}

function route() {
  opened = named();
  if (!opened) return $("sheet").open && $("sheet").close();
  kind = "mission";
  head();
  if (!$("sheet").open) $("sheet").showModal();
  openPage(true);
}

// What is open stays with its worker, also when that goes on to another mission.
function follow() {
  const now = named();
  if (!now) return;
  if (!opened) return route();
  const moved = now.missionId !== opened.missionId;
  opened = now;
  head();
  if (moved) openPage(true);
}

$("sheet-close").addEventListener("click", () => $("sheet").close());
$("sheet").addEventListener("click", (event) => { if (event.target === $("sheet")) $("sheet").close(); });
$("sheet").addEventListener("close", () => {
  const id = opened?.workerId;
  opened = null;
  if (location.hash) history.pushState(null, "", location.pathname);
  cards.get(id)?.name.focus({ preventScroll: true });
});
addEventListener("hashchange", route);
addEventListener("popstate", route);

setInterval(refreshAges, 10_000);
setInterval(reopenSoon, 10_000); // an event is told before its files are written, on a slow disk long before
setInterval(refreshSoon, 60_000);
refresh();
connect();

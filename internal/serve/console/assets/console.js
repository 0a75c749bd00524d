// Everything here is a comfort: the pages are whole without it. Nothing that a
// server sent becomes HTML but by the browser's own reading of a page.
"use strict";

document.documentElement.classList.add("on");

// Rows and keys.

let at = -1;
let going = false; // g was pressed

const rows = () => Array.from(document.querySelectorAll("main [data-row]")).filter((r) => r.offsetParent !== null);

function select(i) {
  const list = rows();
  if (list.length === 0) return;
  at = Math.max(0, Math.min(list.length - 1, i));
  for (const r of document.querySelectorAll(".here")) r.classList.remove("here");
  const row = list[at];
  row.classList.add("here");
  const target = row.querySelector("[data-open]") || row.querySelector("a");
  if (target) target.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function nextDenial() {
  const list = rows();
  const i = list.findIndex((r, n) => n > at && r.hasAttribute("data-denied"));
  select(i >= 0 ? i : list.findIndex((r) => r.hasAttribute("data-denied")));
}

const typing = (e) => e.closest && e.closest("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape" && typing(e.target)) return e.target.blur();
  const keys = document.getElementById("keys");
  if (typing(e.target) || keys.open) return;
  if (going) {
    going = false;
    const link = document.querySelector(`nav [data-key="${CSS.escape(e.key)}"]`);
    if (link) link.click();
    return;
  }
  switch (e.key) {
    case "j": select(at + 1); break;
    case "k": select(at < 0 ? 0 : at - 1); break;
    case "d": nextDenial(); break;
    case "g": going = true; break;
    case "?": keys.showModal(); break;
    case "/": {
      const q = document.getElementById("q") || document.querySelector("[data-editor]");
      if (!q) return;
      q.focus();
      break;
    }
    default: return;
  }
  e.preventDefault();
});

document.addEventListener("focusin", (e) => {
  const row = e.target.closest("[data-row]");
  if (!row) return;
  for (const r of document.querySelectorAll(".here")) r.classList.remove("here");
  row.classList.add("here");
  at = rows().indexOf(row);
});

// Times: how long ago, and when in the zone of the reader.

function ago(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 5) return "just now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} days ago`;
}

const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };

// skew is how far the clock of the service is ahead of the reader's.
const skew = new Date(document.body.dataset.now) - Date.now();

function times(of) {
  const now = new Date(Date.now() + skew);
  for (const t of of.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (isNaN(at)) continue;
    const relative = t.querySelector("[data-ago]");
    const local = t.querySelector("[data-at]");
    if (relative) relative.textContent = ago(now - at);
    if (local) {
      const same = at.toDateString() === now.toDateString();
      local.textContent = at.toLocaleString(undefined, same ? clock : { month: "short", day: "numeric", ...clock });
    }
  }
}

times(document);
setInterval(() => times(document), 15000);

// What takes long says so.

document.addEventListener("submit", (e) => {
  const button = e.submitter;
  if (!button || !button.dataset.busy) return;
  button.textContent = button.dataset.busy;
  setTimeout(() => { button.disabled = true; });
});

// A preview of an edit is come to, and what has a place in the address is too.

const change = document.getElementById("change");
if (change) change.focus();

// Live pages: an event says that something happened, and the page is read again.

const status = document.querySelector("[data-status]");
const kinds = ["run.queued", "run.started", "run.compiled", "run.running", "run.ended",
  "run.start", "cap.audit", "call.done", "caps.swap", "run.complete", "run.failed", "policy.rejected"];

function say(text, live) {
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("going", live);
}

let waiting = 0;
let asking = false;
let again = false;

function soon() {
  if (!waiting) waiting = setTimeout(() => { waiting = 0; refresh(); }, Number(status.dataset.pace) || 250);
}

function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  const ask = new XMLHttpRequest();
  ask.open("GET", location.pathname + location.search);
  ask.responseType = "document";
  ask.onload = () => { if (ask.status === 200 && ask.response) swap(ask.response); };
  ask.onloadend = () => { asking = false; if (again) { again = false; soon(); } };
  ask.send();
}

function swap(page) {
  const old = document.querySelector("[data-live]");
  const fresh = page.querySelector("[data-live]");
  if (!old || !fresh) return;
  const known = new Set(Array.from(old.querySelectorAll("[data-row]"), keyOf));
  const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  for (const r of fresh.querySelectorAll("[data-row]")) if (!known.has(keyOf(r))) r.classList.add("fresh");
  old.replaceWith(document.adoptNode(fresh));
  times(fresh);
  if (focused) {
    const same = fresh.querySelector(`a[href="${CSS.escape(focused)}"]`);
    if (same) same.focus({ preventScroll: true });
  }
}

function keyOf(row) {
  const link = row.querySelector("a");
  return row.id || (link ? link.getAttribute("href") : row.textContent);
}

if (status && status.dataset.events && window.EventSource) {
  const events = new EventSource(status.dataset.events);
  const ended = () => { events.close(); soon(); say("It has ended.", false); };
  events.onopen = () => say("Live", true);
  events.onerror = () => say(events.readyState === EventSource.CLOSED ? "Not live: load the page again to see more." : "Connecting again…", false);
  for (const kind of kinds) events.addEventListener(kind, soon);
  events.addEventListener("end", ended);
}

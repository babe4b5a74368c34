// Makes the page live. Without it everything is there too: the page then reads itself anew.
"use strict";

const texts = document.documentElement.dataset;
const language = document.documentElement.lang;
const SPANS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

// After an event the gateway may still answer with what it read just before: it is good for 200 ms.
const AFTER_EVENT_MS = 300;
const READ_EVERY_MS = 1000; // a part, at most, however much happens
const LOOK_EVERY_MS = 10000; // ages change although nothing happens, and a dead line says nothing
const POLL_EVERY_MS = 3000;
const RECONNECT_MS = [1000, 2000, 4000, 8000];
const ANSWER_MS = 8000;

// --- times -------------------------------------------------------------------------------------

// Written the Swedish way: year, month, day, which no reader takes for another order.
const CLOCK = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
const ZONE = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" });

function zoneAt(instant) {
  return ZONE.formatToParts(instant).find((part) => part.type === "timeZoneName").value;
}

let ahead = 0; // of the gateway's clock, by this machine's

function ago(instant) {
  const seconds = Math.floor((Date.now() + ahead - instant) / 1000);
  const size = Math.abs(seconds);
  if (size < 1) return texts.now;
  const [unit, length] = SPANS.find((span) => size >= span[1]);
  const pattern = seconds < 0 ? texts.in : texts.ago;
  return pattern.replace("%(span)s", `${Math.floor(size / length)} ${unit}`);
}

function tell(time) {
  const instant = Date.parse(time.dateTime);
  if (Number.isNaN(instant)) return;
  const local = CLOCK.format(instant);
  const text = time.dataset.show === "ago" ? ago(instant) : local;
  if (time.textContent !== text) time.textContent = text;
  const title = `${local} ${zoneAt(instant)} = ${time.dateTime}`;
  if (time.title !== title) time.title = title;
}

function tellAll(root = document) {
  root.querySelectorAll("time").forEach(tell);
}

// --- parts -------------------------------------------------------------------------------------

const parts = new Map();
document.querySelectorAll("[data-part]").forEach((element) => {
  const name = element.dataset.part;
  parts.set(name, {
    element,
    source: element.dataset.source || `/status/parts/${encodeURIComponent(name)}`,
    html: null,
    waiting: null,
    later: null,
    readAt: 0,
    busy: false,
    again: false,
  });
});

function isBeingUsed(element) {
  const active = document.activeElement;
  if (active && active !== element && element.contains(active)) {
    if (active.matches("input:not([type=hidden]), textarea, select")) return true;
  }
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && element.contains(selection.anchorNode));
}

function whereFocusIs(element) {
  const active = document.activeElement;
  if (!active || !element.contains(active)) return null;
  const form = active.closest("form");
  const href = active.getAttribute("href");
  const same = (other) =>
    other.tagName === active.tagName &&
    other.getAttribute("href") === href &&
    other.id === active.id &&
    other.closest("form")?.getAttribute("action") === form?.getAttribute("action");
  return (root) => [...root.querySelectorAll(active.tagName)].find(same)?.focus();
}

function swap(part, html) {
  const { element } = part;
  if (html === part.html) return;
  if (isBeingUsed(element)) {
    ask(part, POLL_EVERY_MS);
    return;
  }
  const focus = whereFocusIs(element);
  const open = [...element.querySelectorAll("details[open][id]")].map((one) => one.id);
  const scrolled = [...element.querySelectorAll(".scroll")].map((one) => one.scrollTop);
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  tellAll(fresh);
  element.replaceChildren(...fresh.childNodes);
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  element.querySelectorAll(".scroll").forEach((one, n) => (one.scrollTop = scrolled[n] || 0));
  if (focus) focus(element);
  part.html = html;
  announce(element);
}

// A screen reader hears of a region only if it stays where it is and its text changes.
function announce(element) {
  const region = document.getElementById("announced");
  const text = element.querySelector("[data-announce]")?.textContent.trim();
  if (region && text && region.textContent !== text) region.textContent = text;
}

async function read(part) {
  part.waiting = null;
  if (part.busy) {
    part.again = true;
    return;
  }
  part.busy = true;
  try {
    const answer = await fetch(part.source, {
      headers: { Accept: "text/html" },
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (answer.status === 401 || answer.redirected) return window.location.reload();
    if (answer.ok) {
      const date = Date.parse(answer.headers.get("Date"));
      if (date) ahead = Math.abs(date - Date.now()) > 5000 ? date - Date.now() : 0;
      swap(part, await answer.text());
      isReachable(true);
    } else if (answer.status >= 500) {
      isReachable(false);
    }
  } catch {
    isReachable(false);
  } finally {
    part.busy = false;
    part.readAt = Date.now();
    if (part.again) {
      part.again = false;
      ask(part, AFTER_EVENT_MS);
    }
  }
}

function ask(part, after) {
  if (part.waiting !== null) return;
  const early = part.readAt + READ_EVERY_MS - Date.now();
  part.waiting = setTimeout(() => read(part), Math.max(after, early));
}

// What is made of readings follows them within a second: the last hour and its line.
function askLater(part) {
  const after = Number(part.element.dataset.later);
  if (!after || part.later) return;
  part.later = setTimeout(() => {
    part.later = null;
    ask(part, 0);
  }, after);
}

function askAll() {
  parts.forEach((part) => ask(part, 0));
}

// --- live or not -------------------------------------------------------------------------------

const sign = document.getElementById("live");
let stream = null;
let failures = 0;
let lostAt = null;
let streams = false; // events arrive
let answers = true; // parts are answered

function show() {
  const live = streams && answers;
  if (live) lostAt = null;
  else lostAt = lostAt || new Date();
  const text = live
    ? `● ${texts.live}`
    : `○ ${texts.lost} ${lostAt.toLocaleTimeString(language)}`;
  if (sign.textContent !== text) sign.textContent = text;
  sign.classList.toggle("lost", !live);
}

function isReachable(is) {
  answers = is;
  show();
}

function connect() {
  stream = new EventSource("/v1/events");
  stream.onopen = () => {
    failures = 0;
    streams = true;
    answers = true;
    show();
    askAll(); // whatever was missed meanwhile
  };
  stream.addEventListener("changed", (event) => {
    for (const name of JSON.parse(event.data).parts) {
      const sort = name.endsWith(":*") ? name.slice(0, -1) : null; // all of them
      parts.forEach((part, its) => {
        if (sort ? its.startsWith(sort) : its === name) ask(part, AFTER_EVENT_MS);
      });
    }
  });
  stream.addEventListener("goodbye", (event) => {
    if (JSON.parse(event.data).reason !== "come again") return lose();
    stream.close(); // nothing is wrong: it only wants to know anew who looks
    return connect();
  });
  stream.onerror = lose;
}

function lose() {
  if (stream === null) return;
  stream.close();
  stream = null;
  streams = false;
  show();
  const wait = RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)];
  failures += 1;
  setTimeout(connect, wait * (1 + Math.random()));
}

if (parts.size) {
  connect();
  setInterval(() => {
    if (!document.hidden) askAll();
  }, LOOK_EVERY_MS);
  setInterval(() => {
    if (!streams && !document.hidden) askAll();
  }, POLL_EVERY_MS);
  // That a worker gives no sign is no event.
  parts.forEach((part) => {
    const every = Number(part.element.dataset.look);
    if (every) setInterval(() => document.hidden || ask(part, 0), every);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) askAll();
  });
}

tellAll();
setInterval(tellAll, 1000, document);

// --- forms -------------------------------------------------------------------------------------

document.querySelectorAll("input[data-zone]").forEach((field) => {
  field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || field.value;
});

document.querySelectorAll("form[data-upload]").forEach((form) => {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const place = form.querySelector("[data-progress]");
    const bar = place.querySelector("progress");
    const refusal = form.querySelector("[data-refusal]");
    const button = form.querySelector("button");
    const request = new XMLHttpRequest();
    const end = (text) => {
      refusal.textContent = text;
      button.disabled = false;
      place.hidden = true;
    };
    refusal.textContent = "";
    button.disabled = true;
    place.hidden = false;
    request.upload.onprogress = (sent) => {
      bar.value = Math.floor((100 * sent.loaded) / sent.total);
      place.querySelector("span").textContent = `${bar.value} % ${texts.sent}`;
    };
    request.onerror = () => end(texts.cut);
    request.onload = () => {
      if (request.status < 400) return window.location.assign(request.responseURL);
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      return end(page.querySelector("[role=alert]")?.textContent || `${request.status}`);
    };
    request.open("POST", form.getAttribute("action"));
    request.send(new FormData(form));
  });
});

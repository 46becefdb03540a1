// Behaviour of the pages beyond links, forms and htmx. Data attributes of the elements select it.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// --- Times: convert the server's UTC to the reader's zone. Both have the same width, so the layout does not move.

const two = (number) => String(number).padStart(2, "0");
const dayOf = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;

function showLocalTime(element) {
  const at = new Date(element.dateTime);
  const seconds = "seconds" in element.dataset ? `:${two(at.getSeconds())}` : "";
  const day = "clock" in element.dataset ? "" : `${dayOf(at)} `;
  if (!("age" in element.dataset)) element.textContent = `${day}${clockOf(at)}${seconds}`;
  const exact = at.toLocaleString(document.documentElement.lang, { dateStyle: "full", timeStyle: "long" });
  element.title = [exact, element.dataset.note].filter(Boolean).join("; ");
  element.dataset.local = "";
}

// --- Copy a code block, the element that data-copy names, or the address of a link.

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  const place = button.querySelector("span") ?? button;
  const label = place.textContent;
  place.textContent = button.dataset.done;
  setTimeout(() => (place.textContent = label), 1500);
}

function addCopyButton(block) {
  const button = document.getElementById("copy-button").content.firstElementChild.cloneNode(true);
  button.addEventListener("click", () => copy(block.querySelector("code").textContent, button));
  block.append(button);
  block.dataset.copyable = "";
}

// --- Highlight the search words without changing the text.

const marked = window.Highlight && new Highlight();

function markWords() {
  const words = document.querySelector("[data-words]")?.dataset.words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words || !marked) return;
  for (const place of all("[data-words] > :not([data-marked])")) {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) words.forEach((word) => markWord(texts.currentNode, word));
    place.dataset.marked = "";
  }
  CSS.highlights.set("words", marked);
}

function markWord(node, word) {
  const text = node.data.toLowerCase();
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
    marked.add(new StaticRange({ startContainer: node, startOffset: at, endContainer: node, endOffset: at + word.length }));
  }
}

// --- Unfold the message that was jumped to.

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.closest(".strip")?.setAttribute("open", "");
  target?.querySelector(".fold")?.setAttribute("open", "");
  target?.scrollIntoView();
}

// --- Days in filters are in the reader's time zone, which a cookie tells the server.

function tellZone() {
  const cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  const isTold = () => document.cookie.split("; ").includes(cookie);
  if (isTold()) return;
  remember(cookie);
  // These fields contain UTC times. Convert an instant here; only the server knows when a day begins and ends.
  const fields = all("input[type^=date]").filter((field) => field.value);
  const isSearch = new URLSearchParams(location.search).has("q"); // its words may name a time
  const hasDays = isSearch || document.querySelector(".day, #overview, .year") || fields.some((field) => !field.dataset.at);
  if (isTold() && hasDays) return location.reload();
  fields.forEach((field) => (field.value = localField(field.dataset.at)));
}

function localField(instant) {
  const at = new Date(instant);
  return `${dayOf(at)}T${clockOf(at)}`;
}

// --- Prepare new content of the page.

function prepare() {
  all("time[datetime]:not([data-local])").forEach(showLocalTime);
  all(".code:not([data-copyable])").forEach(addCopyButton);
  markWords();
  document.dispatchEvent(new Event("prepared"));
}

// --- Clicks

const clicks = {
  "[data-cookie]": (button) => {
    remember(button.dataset.cookie);
    location.reload();
  },
  "[data-theme-switch]": () => {
    const page = document.documentElement;
    const isDark = page.dataset.theme ? page.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    page.dataset.theme = isDark ? "light" : "dark";
    remember(`theme=${page.dataset.theme}`);
    document.dispatchEvent(new Event("themechange"));
  },
  "[data-help]": () => document.getElementById("help").showModal(),
  "[data-mine]": (button) => {
    const isOn = document.getElementById("messages").classList.toggle("only-mine");
    press(button, isOn);
    [button.textContent, button.dataset.mine] = [button.dataset.mine, button.textContent];
  },
  "[data-fold]": (button) => {
    const isOpen = button.getAttribute("aria-pressed") !== "true";
    all(".fold").forEach((fold) => (fold.open = isOpen));
    press(button, isOpen);
  },
  "[data-copy-from]": async (button) => copy(await (await fetch(button.dataset.copyFrom)).text(), button),
  "[data-copy]": (button) => copy(document.getElementById(button.dataset.copy).textContent, button),
};

function press(button, isOn) {
  button.setAttribute("aria-pressed", isOn);
}

function remember(cookie) {
  document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax`;
}

document.addEventListener("click", (event) => {
  for (const [selector, act] of Object.entries(clicks)) {
    const element = event.target.closest(selector);
    if (element) act(element, event);
  }
});

// --- In a field of names separated by commas, suggestions complete the text after the last comma.

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-several]")) return;
  const before = event.target.value.replace(/[^,]*$/, "");
  for (const option of event.target.list.options) {
    option.dataset.name ??= option.value;
    option.value = (before && before + " ") + option.dataset.name;
  }
});

// --- Show the name of a chosen file on its label.

document.addEventListener("change", (event) => {
  const file = event.target.files?.[0];
  if (file) event.target.previousElementSibling.textContent = file.name;
});

// --- Show a chosen day immediately.

document.addEventListener("change", (event) => event.target.matches("[data-go]") && event.target.form.requestSubmit());

// --- Record only the final search as an execution, not the searches while the user types.

const SETTLED_MS = 1500;
let settling = null;

document.addEventListener("input", (event) => setTyping(event.target.form), true);
document.addEventListener("submit", (event) => setTyping(event.target, false), true);

function setTyping(form, isTyping = true) {
  const mark = form?.querySelector("[data-typing]");
  if (!mark) return;
  mark.disabled = !isTyping;
  clearTimeout(settling);
  if (isTyping) settling = setTimeout(() => (setTyping(form, false), form.dispatchEvent(new Event("settle"))), SETTLED_MS);
}

// --- Keys: move the focus between elements with data-row, or their links with data-main.

function step(by, selector = "[data-row]") {
  const rows = all(selector).filter((row) => row.offsetParent);
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[here < 0 ? 0 : Math.min(Math.max(here + by, 0), rows.length - 1)];
  (row?.querySelector("[data-main]") ?? row)?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

const keys = {
  "/": () => document.querySelector("main :is([data-search], [data-find])")?.focus(),
  j: () => step(1),
  k: () => step(-1),
  n: () => step(1, ".message.user"),
  p: () => step(-1, ".message.user"),
  "?": () => document.getElementById("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  const isWriting = event.target.closest("input, textarea, select, dialog[open]");
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// --- Live: call handlers for the registry's events, by their kind, from the time of the page on. `catchUp` is called when
// events may have been missed.

const RETRY_MS = 3000;

function listen(acts, catchUp) {
  let events = null;
  let { place } = document.body.dataset;
  let isLost = false;
  const lose = () => {
    isLost = true;
    document.getElementById("notice").replaceChildren(document.getElementById("lost").content.cloneNode(true));
    if (events.readyState !== EventSource.CLOSED) return; // the browser reconnects
    events = null;
    setTimeout(start, RETRY_MS);
    pageAt(location.href); // a reader who is signed out does not wait for the connection
  };
  const find = () => {
    if (!isLost) return;
    isLost = false;
    document.getElementById("notice").replaceChildren();
    catchUp();
  };
  const stop = () => {
    events?.close();
    events = null;
  };
  const start = () => {
    if (events || document.hidden) return;
    events = new EventSource(place ? `/bo/events?after=${place}` : "/bo/events");
    place = null; // catchUp loads the following pages
    events.addEventListener("open", find);
    events.addEventListener("error", lose);
    Object.entries(acts).forEach(([kind, act]) => events.addEventListener(kind, act));
  };
  const goOn = () => {
    if (document.hidden) return stop(); // browsers limit the connections to a server, so hidden pages keep none
    if (events) return;
    start();
    catchUp();
  };
  document.addEventListener("visibilitychange", goOn);
  addEventListener("pageshow", goOn);
  addEventListener("pagehide", stop);
  start();
}

// Return the current page; nothing if the server does not answer.
async function pageAt(address) {
  const answer = await fetch(address).catch(() => null);
  if (answer?.status === 401) return void location.reload(); // the reader is signed out: the form says why
  return answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

// --- If the server does not answer, show a notice, and try again until it does: a form or click as it was, else the page.

const toRepeat = new Map(); // by what was used

function whenReady(used, repeat = () => location.reload()) {
  const isWaiting = toRepeat.size > 0;
  toRepeat.set(used, repeat);
  if (isWaiting) return;
  const timer = setInterval(async () => {
    const answer = await fetch("/ready").catch(() => null);
    if (!answer?.ok) return;
    clearInterval(timer);
    document.getElementById("notice").replaceChildren();
    if (toRepeat.size > 1) toRepeat.delete("page"); // a reload would lose the form
    const repeats = [...toRepeat.values()];
    toRepeat.clear();
    repeats.forEach((repeat) => repeat());
  }, 2000);
}

function sayOffline() {
  document.getElementById("notice").replaceChildren(document.getElementById("offline").content.cloneNode(true));
}

document.addEventListener("htmx:error", (event) => {
  if (event.detail.error?.name !== "TypeError") return; // fetch throws it if the server does not answer
  sayOffline();
  const form = event.detail.ctx.sourceElement;
  if (!form.matches("form")) whenReady("page");
  else whenReady(form, () => (form.method === "post" ? form.requestSubmit() : form.dispatchEvent(new Event("input"))));
});

// Remove the error of the last request when a new one is sent.
document.addEventListener("htmx:before:request", (event) => {
  if (event.detail.ctx.sourceElement.matches("form")) document.getElementById("problem")?.remove();
});

// A list loads up to 150 rows by itself; then its link opens the next page.
document.addEventListener("htmx:before:request", (event) => {
  const isFull = document.querySelectorAll("#rows [data-row]").length >= 150;
  if (isFull && event.detail.ctx.sourceElement.closest("#rows .more")) event.preventDefault();
});

document.addEventListener("htmx:after:swap", prepare);
addEventListener("hashchange", openTarget);
tellZone();
prepare();
openTarget();
if (document.querySelector("[data-heals]")) whenReady("page");

// The workspace: the list next to the open page, the outline, and the palette. `all`, `prepare`, `openTarget`, `whenReady`: app.js.
"use strict";

// --- Prepare new content of the page.

document.addEventListener("prepared", () => {
  all(".stretch").forEach((stretch) => far.observe(stretch));
  all(".message.user[id]").forEach((question) => reading.observe(question));
});

// --- Remove messages far from the window from the document, so that ten thousand cost as much as a hundred; and the
// outline's questions far from its scroll position.

const parked = new WeakMap();

const far = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => (isIntersecting ? bring : park)(target)), {
  rootMargin: "4000px",
  scrollMargin: "1000px",
});

function park(stretch) {
  if (parked.has(stretch) || !stretch.isConnected || stretch.querySelector(":focus, :target, .about[open], .gone")) return;
  stretch.style.height = `${stretch.offsetHeight}px`;
  const held = document.createDocumentFragment();
  held.append(...stretch.childNodes);
  parked.set(stretch, held);
}

function bring(stretch) {
  const held = parked.get(stretch);
  if (!held) return;
  stretch.append(held);
  stretch.style.height = "";
  parked.delete(stretch);
}

// --- The outline marks the question that is being read.

const reading = new IntersectionObserver((entries) => showPlace(entries.find((entry) => entry.isIntersecting)?.target.id), {
  rootMargin: "0px 0px -60% 0px",
});

let currentQuestion = null;

function showPlace(id) {
  if (!id) return;
  const question = `[data-question="${CSS.escape(id)}"]`;
  const part = all(".outline .stretch").find((one) => (parked.get(one) ?? one).querySelector(question));
  if (!part) return;
  bring(part);
  currentQuestion?.removeAttribute("aria-current");
  currentQuestion = part.querySelector(question);
  currentQuestion.setAttribute("aria-current", "true");
  const outline = part.parentElement;
  outline.scrollTop = currentQuestion.offsetTop - outline.offsetTop - 60;
}

// On narrow screens the outline is hidden until it is opened.
document.addEventListener("toggle", (event) => event.target.id === "margin" && showPlace(currentQuestion?.dataset.question), true);

// --- Open an item of a list next to it, without reloading the list.

const addressHere = () => location.pathname + location.search;
const listNow = () => document.querySelector("[data-list]")?.dataset.list;

let shownPage = addressHere();
let shownList = listNow();
let opener = {}; // the page whose items were opened next to its list, and that list
const listHeading = document.querySelector(".split > h1.visually-hidden");

const isItem = () => /^\/(channels|flow)\/./.test(location.pathname);

// Mark the opened item in the list, whose rows may be new.
function markOpened() {
  const links = all(".list [data-main]");
  const opened = links.filter((link) => link.pathname === location.pathname); // a run to check is among all runs, too
  const marked = opened.find((link) => link === document.activeElement) ?? opened[0];
  links.forEach((link) => (link === marked ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
}

document.addEventListener("prepared", markOpened);

const isWide = () => matchMedia("(min-width: 901px)").matches;

let opening = null;

async function openBeside(address, isNew = true) {
  opening?.abort();
  const { signal } = (opening = new AbortController());
  const answer = await fetch(address, { headers: { Accept: "text/html", Pane: "detail" }, signal }).catch(() => null);
  const text = answer?.ok && !answer.redirected ? await answer.text().catch(() => "") : "";
  if (signal.aborted) return; // another item was opened meanwhile
  if (!answer) return sayOffline(), whenReady("beside", () => openBeside(address, isNew));
  const page = new DOMParser().parseFromString(text, "text/html");
  const detail = page.getElementById("detail");
  if (!detail) return location.assign(address);
  const { pathname, search, hash } = new URL(address, location.href);
  if (isNew && !isItem()) opener = { page: addressHere(), list: shownList };
  if (pathname + search !== addressHere()) history.pushState(null, "", pathname + search);
  shownPage = pathname + search;
  document.getElementById("detail").replaceWith(document.adoptNode(detail));
  document.title = page.title;
  if (detail.querySelector("h1")) listHeading?.remove(); // the opened page has its own heading
  else if (listHeading) document.querySelector(".split").prepend(listHeading);
  document.body.dataset.pane = page.body.dataset.pane;
  document.querySelector(".skip").href = page.querySelector(".skip").hash;
  htmx.process(detail);
  prepare();
  if (hash && isNew) location.replace(hash); // a jump, so that the target is marked
  else if (hash) openTarget();
  else scrollTo(0, 0);
  document.dispatchEvent(new Event("beside"));
}

const isPlain = (event) => event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

document.addEventListener("click", (event) => {
  const link = event.target.closest(".list [data-main]");
  if (!link || !isPlain(event) || event.defaultPrevented || !document.getElementById("detail")) return;
  if (!isWide()) return keepTyped(link);
  event.preventDefault();
  openBeside(link.href);
});

// Words whose search has not answered yet go into the address, so that the way back leads to their results.
function keepTyped(link) {
  const list = new URL(shownList, location);
  const typed = document.querySelector(".list [data-search]").value;
  if (typed === (list.searchParams.get("q") ?? "")) return;
  list.searchParams.set("q", typed);
  history.replaceState(null, "", list);
  const item = new URL(link.href);
  item.searchParams.set("list", parametersOf(list.search));
  link.href = item;
}

// A link of the list to itself, which removes a filter or sorts, keeps the opened item.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".list :is(.chips, .listed, .pop, .empty) a");
  if (!isItem() || !isPlain(event) || link?.pathname !== new URL(shownList, location).pathname) return;
  event.preventDefault();
  htmx.ajax("GET", link.href, { target: ".list", select: ".list", swap: "outerHTML ignoreTitle:true" });
});

addEventListener("popstate", () => {
  if (addressHere() === shownPage) return; // a jump within the page
  const { searchParams } = new URL(location);
  const isSameList = isItem() ? (searchParams.get("list") ?? "") === parametersOf(shownList) : addressHere() === opener.page && shownList === opener.list;
  if (isSameList && document.getElementById("detail")) openBeside(location.href, false);
  else location.reload();
});

document.addEventListener("htmx:before:history:restore", (event) => event.preventDefault()); // it would replace the list

// --- Keep the filters of the list in the address: that of the list, or `list` of the item that is opened next to it.

const parametersOf = (address) => address?.split("?")[1] ?? "";

document.addEventListener("htmx:after:swap", () => {
  if (listNow() === shownList) return;
  shownList = listNow();
  const here = new URL(isItem() ? location : shownList, location);
  if (isItem()) parametersOf(shownList) ? here.searchParams.set("list", parametersOf(shownList)) : here.searchParams.delete("list");
  history.replaceState(null, "", here);
  shownPage = addressHere();
});

// --- Selected rows, and the filters recognised in a search.

document.addEventListener("change", (event) => {
  const told = event.target.matches("#rows input") && document.querySelector("[data-chosen]");
  if (told) told.textContent = told.dataset.label.replace("#", all("#rows input:checked").length);
});

document.addEventListener("htmx:after:swap", moveChips);

function moveChips() {
  const now = document.querySelector("[data-chips-now]");
  if (now) document.querySelector("[data-chips]")?.replaceChildren(now.content.cloneNode(true));
}

// --- The palette: find anything from any page.

const palette = document.getElementById("palette");

function openPalette() {
  palette.showModal();
  const input = palette.querySelector("input");
  input.select();
  htmx.trigger(palette.querySelector("form"), "open");
}

palette.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  palette.querySelector("#palette-rows :is(a, button)")?.click();
});

palette.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const rows = [palette.querySelector("input"), ...all("#palette-rows :is(a, button)")];
  rows[Math.min(Math.max(rows.indexOf(document.activeElement) + by, 0), rows.length - 1)].focus();
});

palette.addEventListener("click", (event) => {
  const completion = event.target.closest("[data-complete]")?.dataset.complete;
  if (!completion) return;
  palette.querySelector("input").value = completion;
  palette.querySelector("input").focus();
  htmx.trigger(palette.querySelector("form"), "open");
});

// Add the commands of the open page: its elements marked data-command, with their label there or as their text.
document.addEventListener("htmx:after:swap", (event) => {
  if (!palette.contains(event.detail.ctx.sourceElement)) return;
  const words = palette.querySelector("input").value.trim().toLowerCase();
  const rows = all("main [data-command]").map(asRow).filter((row) => row.textContent.toLowerCase().includes(words));
  document.getElementById("palette-rows")[words ? "prepend" : "append"](...rows);
});

function asRow(command) {
  const row = Object.assign(document.createElement("button"), { type: "button", className: "ghost" });
  row.append(command.querySelector(".icon")?.cloneNode(true) ?? "", command.dataset.command || command.textContent.trim());
  row.addEventListener("click", () => {
    palette.close();
    command.closest(".menu")?.setAttribute("open", "");
    command.click();
  });
  return row;
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-palette-open]")) return;
  event.preventDefault();
  openPalette();
});

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key !== "k") return;
  event.preventDefault();
  if (!palette.open) openPalette();
});

// --- Close menus on a click elsewhere, or by Escape.

function closeMenus(but) {
  all(".menu[open], .about[open]").forEach((menu) => menu.contains(but) || (menu.open = false));
}

document.addEventListener("pointerdown", (event) => closeMenus(event.target));
document.addEventListener("keydown", (event) => event.key === "Escape" && closeMenus(null));

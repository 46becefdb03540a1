// Live updates of the list of conversations and of the open conversation, without moving what the reader sees.

const PAUSE_MS = 700; // at most one update in this time

// Combine the calls of a short time into one.
function soon(act) {
  let timer = null;
  return () => (timer ??= setTimeout(() => ((timer = null), act()), PAUSE_MS));
}

function tell(count, news = document.querySelector("[data-news]")) {
  if (!news) return;
  news.hidden = !count;
  news.textContent = `${news.dataset.label} (${count})`;
}

// --- The list: insert changed rows at their new position, and mark them.

const stateOf = (row) => row.dataset.state;

let isBehind = false; // the list lacks something, because the reader is using it

const isInUse = (list) => list?.matches(":hover, :focus-within") || list?.querySelector("input:checked");

// Load the list from its own address, so that only what matches its filters is added or counted.
async function refreshList(isAsked = false) {
  const channels = document.querySelector("#channels[data-grows]");
  const page = channels && (await pageAt(channels.dataset.list));
  const [list, fresh] = [document.getElementById("rows"), page?.getElementById("rows")];
  if (!page || !channels.isConnected) return; // no answer, or filters were set meanwhile
  isBehind = !isAsked && isInUse(list);
  if (isBehind) return tell(newsIn(list, page));
  if (list && fresh) merge(list, page);
  else if (list || fresh) replaceList(channels, page);
  refreshShelf(page);
  tell(0);
}

const refreshSoon = soon(refreshList);

function newsIn(list, page) {
  const held = new Map([...list.querySelectorAll("[data-id]")].map((row) => [row.dataset.id, stateOf(row)]));
  return [...page.querySelectorAll("#rows [data-id]")].filter((row) => held.get(row.dataset.id) !== stateOf(row)).length;
}

function replaceList(channels, page) {
  if (channels.dataset.list === "/") return location.reload(); // the whole page of an empty registry is another one
  const fresh = document.adoptNode(page.getElementById("channels"));
  channels.replaceWith(fresh);
  htmx.process(fresh);
  prepare();
}

document.addEventListener("click", (event) => event.target.closest("[data-news]") && refreshList(true));
document.addEventListener("pointerleave", (event) => event.target.id === "rows" && isBehind && refreshSoon(), true);

function merge(list, page) {
  const held = new Map([...list.querySelectorAll("[data-id]")].map((row) => [row.dataset.id, row]));
  const fresh = [...page.getElementById("rows").children];
  const wanted = fresh.map((node) => {
    const row = held.get(node.dataset.id);
    if (row && stateOf(row) === stateOf(node)) return row; // keep an unchanged element: it may have the focus
    if (node.dataset.id) node.classList.add("arrived");
    return document.adoptNode(node);
  });
  const last = held.get(wanted.findLast((node) => node.dataset.id)?.dataset.id);
  const kept = new Set(wanted.map((node) => node.dataset.id).filter(Boolean));
  const isCut = wanted.at(-1)?.matches(".more"); // if not, these are all rows
  const further = last && isCut ? following(last).filter((node) => !kept.has(node.dataset.id)) : [];
  if (further.length) wanted.pop();
  arrange(list, [...wanted, ...further]);
  document.querySelector("#channels [role=status]").textContent = page.querySelector("#channels [role=status]").textContent;
  prepare(); // from app.js: convert the times
}

// Projects and their counts, unless the reader is using them.
function refreshShelf(page) {
  const shelf = document.querySelector(".shelf:not(:hover, :focus-within)");
  shelf?.replaceWith(document.adoptNode(page.querySelector(".shelf")));
}

function following(node) {
  const found = [];
  for (let next = node.nextElementSibling; next; next = next.nextElementSibling) found.push(next);
  return found;
}

// Put the children into this order without moving those already in place, so that the focus stays.
function arrange(list, wanted) {
  const stays = new Set(wanted);
  [...list.children].filter((node) => !stays.has(node)).forEach((node) => node.remove());
  let here = list.firstElementChild;
  for (const node of wanted) {
    if (node === here) here = here.nextElementSibling;
    else list.insertBefore(node, here);
  }
}

// --- A conversation: append new messages below a line; if its end is not loaded, show only their number.

let unseen = 0;
let growing = null; // the conversation that is open

const tellHere = (count) => tell((unseen = count), document.querySelector("[data-news-here]"));
const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && tellHere(0));

function watchConversation() {
  growing = document.querySelector("#messages[data-channel]");
  unseen = 0;
  seen.disconnect();
  if (growing) seen.observe(document.getElementById("end"));
}

async function growConversation() {
  const messages = growing;
  const stretches = [...messages.querySelectorAll(".stretch")];
  const isFar = stretches.length && !stretches.at(-1).firstElementChild; // the end is not loaded
  if (messages.querySelector(".later") || isFar) return tellHere(unseen);
  const last = [...messages.querySelectorAll(".message")].at(-1);
  const page = await pageAt(last ? `${location.pathname}?at=${last.id}` : location.pathname);
  if (!page) return;
  const known = new Set([...messages.querySelectorAll(".message")].map((one) => one.id));
  const fresh = [...page.querySelectorAll("#messages .message")].filter((one) => !known.has(one.id));
  if (!fresh.length) return;
  if (!messages.querySelector(".from-here")) messages.append(document.getElementById("from-here").content.cloneNode(true));
  const more = page.querySelector("#messages .later");
  messages.append(...[...fresh, ...(more ? [more] : [])].map((one) => document.adoptNode(one)));
  document.querySelector("[data-facts]").replaceWith(document.adoptNode(page.querySelector("[data-facts]")));
  if (more) htmx.process(messages);
  prepare();
  const isSeen = document.getElementById("end").getBoundingClientRect().top < innerHeight;
  tellHere(isSeen ? 0 : unseen);
}

const growSoon = soon(() => growing && growConversation());

document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-news-here]") && growing?.querySelector(".from-here");
  if (!line) return; // without a line, the notice links to the end
  event.preventDefault();
  line.scrollIntoView();
  tellHere(0);
});

// --- The first steps: a message or a run may tick one off.

const stepsSoon = soon(() => document.getElementById("steps") && htmx.trigger("#steps", "news"));

function note(event) {
  stepsSoon();
  const { channel } = JSON.parse(event.data);
  if (channel === growing?.dataset.channel) (unseen++, growSoon());
  refreshSoon();
}

// --- Show names, sharing and deletions by other windows.

const EDITS = new Set(["tag", "share", "delete", "restore"]);
const renewSoon = soon(() => growing && renewHead());

async function renewHead() {
  const head = (await pageAt(location.pathname))?.getElementById("head");
  if (!head) return location.reload(); // deleted forever
  const shown = document.getElementById("head");
  if (shown.querySelector(":focus, details[open]")) return; // the reader is editing the names
  shown.replaceWith(document.adoptNode(head));
  htmx.process(head);
  prepare();
}

function noteEdit(event) {
  stepsSoon();
  const { operation, channel } = JSON.parse(event.data);
  if (!EDITS.has(operation)) return;
  if (channel === growing?.dataset.channel) renewSoon();
  refreshSoon();
}

document.addEventListener("beside", watchConversation);
watchConversation();
listen({ message: note, execution: noteEdit }, () => (refreshSoon(), growSoon(), stepsSoon()));

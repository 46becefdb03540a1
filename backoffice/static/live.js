// What comes in while one reads: the list of conversations, and a conversation that is open. Nothing moves under the reader.

const PAUSE_MS = 700; // so often at most, however much is stored

const news = document.querySelector("[data-news]");

// Called once for whatever happens within a moment.
function soon(act) {
  let timer = null;
  return () => (timer ??= setTimeout(() => ((timer = null), act()), PAUSE_MS));
}

function tell(count) {
  if (!news) return;
  news.hidden = !count;
  news.textContent = `${news.dataset.label} (${count})`;
}

// --- The list: rows that changed come in where they belong now, and are marked.

const stateOf = (row) => row.dataset.state;

function growList() {
  const list = document.getElementById("rows");
  if (!list) return listen({ message: soon(() => location.reload()) }, () => {}); // the first conversation of a registry
  const waiting = new Set();
  const isInUse = () => list.matches(":hover, :focus-within") || list.querySelector("input:checked");

  const refresh = async () => {
    if (!list.isConnected) return; // filters were changed meanwhile
    const page = await pageAt(location.href);
    if (page?.getElementById("rows")) merge(list, page);
    waiting.clear();
    tell(0);
  };
  const refreshSoon = soon(() => (isInUse() ? tell(waiting.size) : refresh()));
  const note = (event) => {
    waiting.add(JSON.parse(event.data).channel);
    refreshSoon();
  };
  news?.addEventListener("click", refresh);
  list.addEventListener("pointerleave", () => waiting.size && refreshSoon());
  listen({ message: note }, refreshSoon);
}

function merge(list, page) {
  const held = new Map([...list.querySelectorAll("[data-id]")].map((row) => [row.dataset.id, row]));
  const fresh = [...page.getElementById("rows").children];
  const wanted = fresh.map((node) => {
    const row = held.get(node.dataset.id);
    if (row && stateOf(row) === stateOf(node)) return row; // what is in use stays the same element
    if (node.dataset.id) node.classList.add("arrived");
    return document.adoptNode(node);
  });
  const last = held.get(wanted.findLast((node) => node.dataset.id)?.dataset.id);
  const kept = new Set(wanted.map((node) => node.dataset.id).filter(Boolean));
  const further = last ? following(last).filter((node) => !kept.has(node.dataset.id)) : [];
  if (further.length && wanted.at(-1).matches(".more")) wanted.pop();
  arrange(list, [...wanted, ...further]);
  document.querySelector("#channels [role=status]").textContent = page.querySelector("#channels [role=status]").textContent;
  prepare(); // of app.js: the times
}

function following(node) {
  const found = [];
  for (let next = node.nextElementSibling; next; next = next.nextElementSibling) found.push(next);
  return found;
}

// These children in this order; those that are in their place already are not touched, so that the focus stays.
function arrange(list, wanted) {
  const stays = new Set(wanted);
  [...list.children].filter((node) => !stays.has(node)).forEach((node) => node.remove());
  let here = list.firstElementChild;
  for (const node of wanted) {
    if (node === here) here = here.nextElementSibling;
    else list.insertBefore(node, here);
  }
}

// --- A conversation: what is said goes to its end, with a line above it; where the end is far, only its number is told.

function growConversation(messages) {
  const { channel } = messages.dataset;
  let unseen = 0;
  const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && tell((unseen = 0)));
  seen.observe(document.getElementById("end"));

  const grow = async () => {
    const last = [...messages.querySelectorAll(".message")].at(-1);
    if (messages.querySelector(".later")) return tell(unseen);
    const page = await pageAt(last ? `?at=${last.id}` : location.pathname);
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
    tell(isSeen ? (unseen = 0) : unseen);
  };
  const growSoon = soon(grow);
  listen({ message: (event) => JSON.parse(event.data).channel === channel && (unseen++, growSoon()) }, growSoon);
  news.addEventListener("click", (event) => {
    const line = messages.querySelector(".from-here");
    if (!line) return; // a link to the end
    event.preventDefault();
    line.scrollIntoView();
    tell((unseen = 0));
  });
}

const messages = document.querySelector("#messages[data-channel]");
if (messages) growConversation(messages);
if (document.querySelector("#channels[data-grows]")) growList();

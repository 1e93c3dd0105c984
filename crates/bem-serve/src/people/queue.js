// Works through the queue: one question at a time, one key answers and goes on. Everything that is shown is drawn by the
// server; here are keys, leases and what was answered last.
"use strict";
const $ = (id) => document.getElementById(id);
const csrf = document.querySelector("meta[name=csrf]")?.content || "";
// Usual keys as the server lists them: what can be done beside answering, and the answers to each kind of question.
const usual = JSON.parse($("help")?.dataset.keys || '{"beside":[],"answers":{}}');
let keys = ownKeys(), leased = null, last = null, order = [], busy = false;

async function send(path, body, method = "POST") {
  const headers = { "x-csrf-token": csrf };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(json.error ? json.error.message : "the server answered " + answer.status);
  return json;
}
function say(text, isBad) {
  $("status").textContent = text;
  $("status").className = isBad ? "fail" : "muted";
}
function usualKeys() {
  const answers = Object.fromEntries(Object.keys(usual.answers).map((kind) => [kind, {}]));
  return { ...Object.fromEntries(usual.beside.map((one) => [one.name, one.key])), answers };
}
function isKey(key) {
  return typeof key === "string" && (key === "Enter" || ([...key].length === 1 && key.trim() !== ""));
}
function answerKey(all, kind, key) {
  return all.answers[kind]?.[key] || key;
}
// The keys that were kept in this browser; the usual ones where nothing that makes sense was kept.
function ownKeys() {
  const own = usualKeys();
  try {
    const kept = JSON.parse(localStorage.getItem("bem-keys") || "{}");
    for (const { name } of usual.beside) if (isKey(kept[name])) own[name] = kept[name];
    for (const [kind, answers] of Object.entries(usual.answers)) {
      for (const key of answers) if (isKey(kept.answers?.[kind]?.[key])) own.answers[kind][key] = kept.answers[kind][key];
    }
  } catch { return usualKeys(); }
  return conflict(own) ? usualKeys() : own;
}
// Why these keys cannot be: in some kind of question one of them would mean two things.
function conflict(all) {
  for (const [kind, answers] of Object.entries(usual.answers)) {
    const taken = new Map();
    const uses = [
      ...usual.beside.map((one) => [all[one.name], `\u201c${one.words}\u201d`]),
      ...answers.map((key) => [answerKey(all, kind, key), `the answer that is usually ${key} to questions of the kind ${kind}`]),
    ];
    for (const [key, words] of uses) {
      if (taken.has(key)) return `The key ${key} would mean two things: ${taken.get(key)}, and ${words}. Nothing is changed.`;
      taken.set(key, words);
    }
  }
  return "";
}
function shortcut(key) {
  return key === "+" ? "Plus" : key;
}
function showKeys() {
  for (const { name } of usual.beside) {
    for (const cap of document.querySelectorAll(`[data-cap=${name}]`)) cap.textContent = keys[name];
    $("do-" + name).setAttribute("aria-keyshortcuts", shortcut(keys[name]));
  }
  for (const button of $("question").querySelectorAll("button[data-key]")) {
    button.dataset.usual ||= button.dataset.key;
    button.dataset.key = answerKey(keys, leased.question.kind, button.dataset.usual);
    button.querySelector("kbd").textContent = button.dataset.key;
    button.setAttribute("aria-keyshortcuts", shortcut(button.dataset.key));
  }
}
// Fills the form of the keys; the answers are those of the question on the page.
function showForm() {
  for (const { name } of usual.beside) $("key-" + name).value = keys[name];
  const buttons = [...$("question").querySelectorAll("button[data-key]")];
  if (buttons.length) {
    $("answer-keys").replaceChildren(...buttons.map((button) => {
      const row = document.createElement("p"), label = document.createElement("label"), field = document.createElement("input");
      label.append(button.querySelector("span").textContent + " ", field);
      Object.assign(field, { value: button.dataset.key, maxLength: 5, size: 6, autocomplete: "off" });
      field.dataset.usual = button.dataset.usual;
      row.append(label);
      return row;
    }));
  } else {
    const none = document.createElement("p");
    none.className = "muted";
    none.textContent = "No question is open: its answers would be listed here.";
    $("answer-keys").replaceChildren(none);
  }
  $("keys-said").textContent = "";
}
// Puts new keys into force and keeps them; a sentence where they are refused.
function setKeys(all) {
  const refused = conflict(all);
  if (refused) return refused;
  keys = all;
  showKeys();
  try { localStorage.setItem("bem-keys", JSON.stringify(keys)); } catch { return "This browser keeps nothing: these keys are in force until the page is left."; }
  return "";
}
function saveKeys() {
  const all = { ...keys, answers: { ...keys.answers } }, kind = leased?.question.kind;
  const answers = { ...all.answers[kind] };
  for (const field of $("help").querySelectorAll("input")) {
    const key = field.value.trim() || field.dataset.usual;
    if (!isKey(key)) return `${key} is no key: it must be one letter, digit or sign, or Enter. Nothing is changed.`;
    if (field.id) all[field.id.slice("key-".length)] = key;
    else if (key === field.dataset.usual) delete answers[key];
    else answers[field.dataset.usual] = key;
  }
  if (kind) all.answers[kind] = answers;
  return setKeys(all);
}
async function next() {
  try {
    const answer = await send("/v1/questions/next");
    leased = answer.leased;
    order = [];
    $("progress").textContent = `${answer.open} open, ${answer.answered_by_you} answered by you; the machine may ask about ${answer.budget[0]} more steps now`;
    $("question").innerHTML = leased ? leased.html : "<p id=none>No question is open for you. This page looks again every few seconds.</p>";
    $("tools").hidden = !leased;
    for (const button of $("question").querySelectorAll("button[data-answer]")) {
      button.addEventListener("click", () => give(JSON.parse(button.dataset.answer)));
    }
    for (const button of $("question").querySelectorAll("button[data-rank]")) {
      button.addEventListener("click", () => rank(button));
    }
    showKeys();
    const title = $("question").querySelector("h2");
    if (title) { title.tabIndex = -1; title.focus({ preventScroll: true }); }
  } catch (error) { say(error.message, true); }
}
async function give(answer) {
  if (!leased || busy) return;
  busy = true;
  const id = leased.question.question;
  try {
    const given = await send(`/v1/questions/${id}/answer`, { lease: leased.lease, answer });
    last = given.answer;
    const words = (given.changes || []).map((change) => change.words).slice(0, 3).join("; ");
    say(given.answer ? `Answered question ${id}. ${words || "Nothing changed yet."}` : `Question ${id} waits for ${given.waits_for}.`);
    $("do-undo").disabled = !last;
  } catch (error) { say(error.message, true); }
  busy = false;
  await next();
}
function rank(button) {
  const place = Number(button.dataset.rank);
  if (order.includes(place)) order = order.filter((other) => other !== place); else order.push(place);
  for (const other of $("question").querySelectorAll("button[data-rank]")) {
    const at = order.indexOf(Number(other.dataset.rank));
    other.querySelector(".place").textContent = at < 0 ? "" : `wanted ${at + 1}.`;
    other.setAttribute("aria-pressed", at < 0 ? "false" : "true");
  }
  const all = $("question").querySelectorAll("button[data-rank]").length;
  if (order.length === all) give({ order });
}
async function put(what, body) {
  if (!leased) return;
  const id = leased.question.question;
  try {
    await send(`/v1/questions/${id}/${what}`, { lease: leased.lease, ...body });
    say(what === "skip" ? `Question ${id} is skipped.` : `Question ${id} is given back.`);
  } catch (error) { say(error.message, true); }
  if (what === "release") { leased = null; $("question").innerHTML = "<p>Given back. Press Enter for the next question.</p>"; $("tools").hidden = true; return; }
  await next();
}
async function undo() {
  if (!last) { say("There is nothing of this visit to take back; see the history.", true); return; }
  try {
    const back = await send(`/v1/answers/${last}/undo`);
    const words = (back.taken_back || []).map((change) => change.words).slice(0, 3).join("; ");
    say(`Answer ${last} is taken back. ${words}`);
    last = null;
    $("do-undo").disabled = true;
  } catch (error) { say(error.message, true); }
}
if ($("question")) {
  $("do-skip").addEventListener("click", () => put("skip", { reason: "declined" }));
  $("do-release").addEventListener("click", () => put("release", {}));
  $("do-undo").addEventListener("click", undo);
  $("do-help").addEventListener("click", () => { showForm(); $("help").showModal(); });
  $("close-help").addEventListener("click", () => $("help").close());
  $("save-keys").addEventListener("click", () => {
    const refused = saveKeys();
    if (refused) $("keys-said").textContent = refused; else $("help").close();
  });
  $("usual-keys").addEventListener("click", () => {
    const refused = setKeys(usualKeys());
    showForm();
    $("keys-said").textContent = refused;
  });
  // A field takes the key that is pressed in it; Tab, Escape and what deletes do as everywhere.
  $("help").addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!event.target.matches("input") || !isPlain || !isKey(event.key)) return;
    event.preventDefault();
    event.target.value = event.key;
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || event.target.matches("input,select,textarea")) return;
    // Enter on a button or a link means that one.
    if (event.key === "Enter" && event.target.closest("button,a,summary")) return;
    if (event.key === "Enter" && !leased) { event.preventDefault(); next(); return; }
    const button = [...$("question").querySelectorAll("button[data-key]")].find((one) => one.dataset.key === event.key);
    if (button) { event.preventDefault(); button.click(); return; }
    const does = { [keys.skip]: "do-skip", [keys.release]: "do-release", [keys.undo]: "do-undo", [keys.help]: "do-help" }[event.key];
    if (does && !$(does).disabled) { event.preventDefault(); $(does).click(); }
  });
  setInterval(() => { if (!leased && !document.hidden && $("none")) next(); }, 3000);
  showKeys();
  next();
}
for (const button of document.querySelectorAll("button[data-undo]")) {
  button.addEventListener("click", async () => {
    try { await send(`/v1/answers/${button.dataset.undo}/undo`); location.reload(); } catch (error) { say(error.message, true); }
  });
}
for (const form of document.querySelectorAll("form[data-verify]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const verdict = $("verdict"), button = form.querySelector("button"), file = form.elements.checkpoint.files[0];
    button.disabled = true;
    verdict.className = "muted";
    verdict.textContent = "The history is read from its beginning; this may take a while.";
    try {
      const report = await send("/v1/history/verify", file ? { checkpoint: await file.text() } : {});
      const words = {
        ok: () => `ok: ${report.entries} entries fit together, the first ${report.anchored_entries} of them under your checkpoint`,
        unanchored: () => `unanchored: ${report.entries} entries fit together; a checkpoint that you kept would exclude a rollback`,
        broken: () => `broken at entry ${report.entry}, because ${report.reason}`,
      };
      verdict.className = report.verdict === "broken" ? "fail" : "pass";
      verdict.textContent = words[report.verdict]() + `. ${report.certificates} certificates were checked again; head ${report.head}`;
    } catch (error) { verdict.className = "fail"; verdict.textContent = error.message; }
    button.disabled = false;
  });
}
for (const form of document.querySelectorAll("form[data-control]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const control = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      control[field.name] = field.type === "checkbox" ? field.checked : field.tagName === "SELECT" ? field.value : Number(field.value);
    }
    try { await send("/v1/people/control", control, "PUT"); say("The control is in force."); } catch (error) { say(error.message, true); }
  });
}

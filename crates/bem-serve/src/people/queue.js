// Works through the queue: one question at a time, one key answers and goes on. Everything that is shown is drawn by the
// server; here are keys, leases and what was answered last.
"use strict";
const $ = (id) => document.getElementById(id);
const csrf = document.querySelector("meta[name=csrf]")?.content || "";
const usual = { skip: "s", release: "r", undo: "u", help: "?" };
let keys = usual;
try { keys = { ...usual, ...JSON.parse(localStorage.getItem("bem-keys") || "{}") }; } catch { keys = usual; }
let leased = null, last = null, order = [], busy = false;

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
function showKeys() {
  for (const name of Object.keys(usual)) {
    for (const cap of document.querySelectorAll(`[data-cap=${name}]`)) cap.textContent = keys[name];
    const field = $("key-" + name);
    if (field) field.value = keys[name];
    const button = $("do-" + name);
    if (button) button.setAttribute("aria-keyshortcuts", keys[name]);
  }
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
  $("do-help").addEventListener("click", () => $("help").showModal());
  $("close-help").addEventListener("click", () => $("help").close());
  $("save-keys").addEventListener("click", () => {
    for (const name of Object.keys(usual)) keys[name] = $("key-" + name).value.slice(0, 1) || usual[name];
    localStorage.setItem("bem-keys", JSON.stringify(keys));
    showKeys();
    $("help").close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || event.target.matches("input,select,textarea")) return;
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

// The page of the service. The key is in a variable of this module and in the header of each request, and nowhere else.
// Text from the service becomes text nodes, never HTML.

const $ = (id) => document.getElementById(id);
let key = "";
let gallery = null;

function make(tag, content = [], attributes = {}) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...[content].flat().map((part) => (part instanceof Node ? part : String(part))));
  return element;
}

function table(caption, columns, rows) {
  const head = columns.map(([name, kind]) => make("th", name, { scope: "col", class: kind ?? "" }));
  const body = rows.map((row) => make("tr", row.map((cell, j) => make("td", cell, { class: columns[j][1] ?? "" }))));
  const made = make("table", [make("caption", caption), make("thead", make("tr", head)), make("tbody", body)]);
  return make("div", made, { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
}

function say(sentence, isBad = false) {
  $("status").textContent = sentence;
  $("status").classList.toggle("bad", isBad);
}

const digits = (value, n = 3) => (value === null ? "–" : String(Number(Number(value).toPrecision(n))));
const count = (n, one, several) => `${n.toLocaleString("en")} ${n === 1 ? one : several}`;
const decided = (decision) => make("span", decision, { class: `decision ${decision}` });

async function ask(method, path, body, headers = {}) {
  const given = { Authorization: `Bearer ${key}`, ...headers };
  if (body !== undefined) given["Content-Type"] = "application/json";
  const options = { method, headers: given, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", credentials: "omit" };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The service does not answer.");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.detail ?? `The service answered with status ${answer.status}.`);
  return content;
}

// An enrolment that is sent again after an error must be the same one for the service: its name belongs to what is in the form.
const names = new Map();
function requestName(content) {
  const text = JSON.stringify(content);
  if (!names.has(text)) names.set(text, crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join(""));
  return { name: names.get(text), done: () => names.delete(text) };
}

function working(form, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((button) => (button.disabled = true));
    say("Working …");
    try {
      await work();
    } catch (error) {
      say(error.message, true);
    } finally {
      buttons.forEach((button) => (button.disabled = false));
    }
  });
}

// Samples: one per line; a first line with names is used to find the features.
function parse(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  if (!lines.length) throw new Error("Type a sample, or choose a CSV file.");
  const mark = ["\t", ";", ","].find((one) => lines[0].includes(one)) ?? /\s+/;
  const rows = lines.map((line) => (mark === "," || mark === ";" ? cells(line, mark) : line.trim().split(mark)).map((cell) => cell.trim()));
  const { features, kinds } = gallery;
  const named = features.every((name) => rows[0].includes(name));
  const isHeader = named || (kinds.every((kind) => kind === "number") && rows[0].some((cell) => cell && !Number.isFinite(Number(cell))));
  let places = features.map((_, j) => j);
  if (isHeader) {
    const header = rows.shift();
    places = features.map((name) => header.indexOf(name));
    const missing = features.filter((_, j) => places[j] < 0);
    if (missing.length) throw new Error(`The first line does not name the feature ${missing[0]}; it must name all ${features.length}.`);
    if (!rows.length) throw new Error("There is no sample below the line with names.");
  }
  return rows.map((row, at) => {
    if (!isHeader && row.length !== features.length) {
      throw new Error(`Sample ${at + 1} has ${count(row.length, "value", "values")}, and ${features.length} are needed.`);
    }
    return places.map((place, j) => {
      const value = valueOf(row[place] ?? "", kinds[j]);
      if (value === null && !gallery.takes_missing) throw new Error(`Sample ${at + 1} has no value for the feature ${features[j]}.`);
      if (Number.isNaN(value)) throw new Error(`Sample ${at + 1} has no number for the feature ${features[j]}.`);
      return value;
    });
  });
}

// What a cell stands for, null if it is empty; NaN if it is not the number that it must be.
function valueOf(cell, kind) {
  if (cell === "") return null;
  if (kind === "boolean" && /^(true|false)$/i.test(cell)) return cell.toLowerCase() === "true";
  if (kind === "category" || kind === "date" || kind === "left out") return cell;
  return Number.isFinite(Number(cell)) ? Number(cell) : NaN;
}

function cells(line, mark) {
  const found = [];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at];
    if (letter === '"' && quoted && line[at + 1] === '"') cell += line[(at += 1)];
    else if (letter === '"') quoted = !quoted;
    else if (letter === mark && !quoted) found.push(cell), (cell = "");
    else cell += letter;
  }
  return [...found, cell];
}

function fileInto(input, area) {
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    if (file.size > gallery.limits.max_body) {
      say(`The file is larger than a request may be (${gallery.limits.max_body.toLocaleString("en")} bytes).`, true);
      return;
    }
    area.value = await file.text();
    say(`Read: ${file.name}.`);
  });
}

function can(scope) {
  return gallery.scopes.includes(scope) || gallery.scopes.includes("admin");
}

function show() {
  const calibrated = gallery.calibration
    ? `calibrated so that at most ${100 * gallery.calibration.max_fpir} % of strangers have a candidate`
    : "not calibrated for strangers, so that no decision is made";
  $("facts").textContent =
    `${count(gallery.n_identities, "identity", "identities")}, ${count(gallery.n_samples, "sample", "samples")}; ${gallery.model} ${gallery.fingerprint.slice(0, 12)}; ${calibrated}.`;
  $("who").textContent = `Logged in as ${gallery.key}, for ${gallery.scopes.join(", ")}.`;
  const some = gallery.features.length > 6 ? [...gallery.features.slice(0, 5), "…", gallery.features.at(-1)] : gallery.features;
  $("samples-hint").textContent = `one per line, ${count(gallery.features.length, "value", "values")}: ${some.join(", ")}; a first line may name them`;
  $("identify-section").hidden = !can("identify");
  $("people-section").hidden = !can("enrol");
  $("audit-section").hidden = !can("admin");
  $("login").hidden = true;
  $("work").hidden = false;
}

function logout() {
  key = "";
  gallery = null;
  names.clear();
  for (const id of ["found", "people", "calls"]) $(id).replaceChildren();
  for (const id of ["key", "samples", "enrol-id", "enrol-samples", "prefix", "file", "enrol-file"]) $(id).value = "";
  $("facts").textContent = "";
  $("work").hidden = true;
  $("login").hidden = false;
  $("key").focus();
}

function explanation(answer) {
  const rows = answer.contributions.map((entry) => [entry.feature, entry.value, entry.contribution]);
  if (answer.n_others) rows.push([count(answer.n_others, "other feature", "other features"), null, answer.others]);
  const largest = Math.max(...rows.map((row) => Math.abs(row[2])), 1e-12);
  const items = rows.map(([name, value, amount]) =>
    make("li", [
      make("span", value === null ? name : `${name} = ${typeof value === "number" ? digits(value) : value}`, { class: "name" }),
      make("progress", [], { max: largest, value: Math.abs(amount), "aria-hidden": "true", class: amount < 0 ? "against" : "for" }),
      make("span", `${amount < 0 ? "−" : "+"}${digits(Math.abs(amount))}`, { class: "amount" }),
    ]),
  );
  const text = `Score ${digits(answer.explained_score)} with the most similar enrolled sample = ${digits(answer.base)} of an average pair, plus what features say for (+) or against (−) the same identity:`;
  return make("div", [make("p", text), make("ul", items, { class: "bars" })], { class: "panel" });
}

function candidateRow(candidate, sample, below) {
  const cell = [];
  if (gallery.can_explain) {
    const button = make("button", "Explain", { type: "button", class: "quiet", "aria-label": `Explain ${candidate.id}` });
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const answer = await ask("POST", "v1/explain", { id: candidate.id, sample });
        below.replaceChildren(make("h4", `Why ${candidate.id}?`), explanation(answer));
        say(`Explained ${candidate.id}.`);
      } catch (error) {
        say(error.message, true);
      } finally {
        button.disabled = false;
      }
    });
    cell.push(button);
  }
  const { rank, id, score, probability, expected_false_matches: expected } = candidate;
  return [rank, id, digits(score, 4), digits(probability), digits(expected), decided(candidate.decision), cell];
}

async function identify() {
  const samples = parse($("samples").value);
  const body = { samples, k: Number($("k").value) };
  if ($("fpir").value) body.max_fpir = Number($("fpir").value);
  const answer = await ask("POST", "v1/identify", body);
  const columns = [["rank", "number"], ["id"], ["score", "number"], ["probability", "number"], ["expected false matches", "number"], ["decision"], [""]];
  columns[6][0] = gallery.can_explain ? "why" : "";
  const parts = answer.results.map((result, at) => {
    const below = make("div", [], { "aria-live": "polite" });
    const rows = result.candidates.map((candidate) => candidateRow(candidate, samples[at], below));
    const title = make("h3", [`Sample ${at + 1}: `, decided(result.decision)]);
    return make("div", [title, table(`Candidates of sample ${at + 1}`, columns, rows), below]);
  });
  const rate = answer.expected_fpir === null ? "" : ` Expected share of strangers with a candidate: ${digits(100 * answer.expected_fpir)} %.`;
  const threshold = answer.threshold === null ? "" : `Threshold ${digits(answer.threshold, 4)}. `;
  $("found").replaceChildren(
    make("p", `${threshold}${answer.promise.replace(/\.$/, "")}.${rate} Searched: ${count(answer.n_searched, "identity", "identities")}.`, { id: "promise" }),
    ...parts,
  );
  say(`Searched for ${count(samples.length, "sample", "samples")}.`);
  $("found").focus();
}

async function enrol() {
  const id = $("enrol-id").value;
  const body = { samples: parse($("enrol-samples").value), on_duplicate: "report" };
  const request = requestName([id, body]);
  const path = `v1/subjects/${encodeURIComponent(id)}/samples`;
  const answer = await ask("POST", path, body, { "Idempotency-Key": request.name });
  request.done();
  const twins = answer.duplicates.map((one) => one.other);
  const warning = twins.length ? ` Check whether ${twins.join(", ")} is the same: a sample matches.` : "";
  for (const input of ["enrol-id", "enrol-samples", "enrol-file"]) $(input).value = "";
  await refresh();
  say(`Enrolled: ${count(answer.n_samples, "sample", "samples")} of ${id}.${warning}`);
}

async function refresh() {
  gallery = await ask("GET", "v1/gallery");
  show();
}

async function list() {
  const query = new URLSearchParams({ prefix: $("prefix").value, limit: "50" });
  const answer = await ask("GET", `v1/subjects?${query}`);
  const rows = answer.ids.map((id) => {
    const look = make("button", "Look", { type: "button", class: "quiet", "aria-label": `Look at ${id}` });
    look.addEventListener("click", () => describe(id));
    const cell = [look];
    if (can("admin")) {
      const button = make("button", "Remove …", { type: "button", class: "quiet", "aria-label": `Remove ${id}` });
      button.addEventListener("click", () => confirmRemoval(id));
      cell.push(" ", button);
    }
    return [id, cell];
  });
  const more = answer.next === null ? [] : [make("p", "There are more; type how they begin.", { class: "faint" })];
  const listed = rows.length ? table("Enrolled identities", [["id"], ["what to do"]], rows) : make("p", "Nobody.");
  $("people").replaceChildren(listed, ...more, make("p", [], { id: "about", role: "status" }));
  say(`Listed: ${count(answer.ids.length, "identity", "identities")}.`);
}

async function describe(id) {
  try {
    const answer = await ask("GET", `v1/subjects/${encodeURIComponent(id)}`);
    const known = Object.entries(answer.metadata).map(([name, value]) => `${name}: ${value}`);
    const first = answer.first ? `, from ${answer.first.slice(0, 10)} to ${answer.last.slice(0, 10)}` : "";
    $("about").textContent = `${id}: ${[`${count(answer.n_samples, "sample", "samples")}${first}`, ...known].join("; ")}.`;
  } catch (error) {
    say(error.message, true);
  }
}

function confirmRemoval(id) {
  const dialog = $("confirm");
  $("confirm-id").textContent = id;
  $("confirm-text").textContent = "Nobody can find this person any more, and it cannot be undone. The bytes leave the file with the next simtree gallery compact.";
  dialog.returnValue = "cancel";
  dialog.addEventListener(
    "close",
    async () => {
      if (dialog.returnValue !== "remove") return;
      try {
        const answer = await ask("DELETE", `v1/subjects/${encodeURIComponent(id)}`);
        await refresh();
        await list();
        say(`Removed: ${id} with ${count(answer.n_samples, "sample", "samples")}.`);
        $("people").focus();
      } catch (error) {
        say(error.message, true);
      }
    },
    { once: true },
  );
  dialog.showModal();
  dialog.querySelector("button[value=cancel]").focus(); // the harmless one
}

async function audit() {
  const answer = await ask("GET", "v1/audit?limit=50");
  const columns = [["time (UTC)"], ["key"], ["action"], ["status", "number"], ["samples", "number"], ["people", "number"], ["ms", "number"], ["hashes of people"]];
  const rows = answer.calls.map((call) => [
    call.time.replace("T", " ").replace("Z", ""),
    call.key,
    call.action,
    call.status,
    call.n_samples,
    call.subjects.length,
    digits(call.milliseconds),
    make("code", call.subjects.slice(0, 2).map((hash) => hash.slice(0, 8)).join(" ") + (call.subjects.length > 2 ? " …" : "")),
  ]);
  $("calls").replaceChildren(table("Calls of the service", columns, rows));
  say(`Read: ${count(rows.length, "call", "calls")}.`);
  $("calls").focus();
}

working($("login"), async () => {
  key = $("key").value.trim();
  try {
    await refresh();
  } catch (error) {
    key = "";
    throw error;
  }
  $("key").value = "";
  say("Logged in.");
});
working($("identify"), identify);
working($("enrol"), enrol);
working($("list"), list);
working($("audit"), audit);
fileInto($("file"), $("samples"));
fileInto($("enrol-file"), $("enrol-samples"));
$("logout").addEventListener("click", () => (logout(), say("Logged out.")));
// A service on this machine may ask for no key.
fetch("livez").then((answer) => answer.json()).then(({ needs_key: needed }) => (needed ? $("key").focus() : refresh()), () => say("The service does not answer.", true));

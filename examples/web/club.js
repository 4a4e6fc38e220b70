/** The page of a member: an invented history, twenty visits that cost one ε, and one answer to a survey. */
import { load, report } from "./client/core.js";
import { openBudget } from "./client/budget_browser.js";
import { send } from "./client/send.js";
import { loadStream } from "./client/stream.js";

const EPOCH = "2026-11";
const CROWD = 2000;
const LOVED = { Horror: 3, "Science fiction": 2, Drama: 0.5 }; // how this club differs from the public survey
const BATCH = 100;
const element = (id) => document.getElementById(id);

const club = await (await fetch("club.json")).json();
element("live").href = club.collector + "/";
const collector = club.collector + "/v1/reports";

/** Whoever opens a tab is somebody else: a name for this tab, kept while it is open. */
function memberOfThisTab() {
  let member = sessionStorage.getItem("member");
  if (!member) {
    member = "member " + (1 + (crypto.getRandomValues(new Uint32Array(1))[0] % 9999));
    sessionStorage.setItem("member", member);
  }
  return member;
}

/** Invented films: the club's taste, bent by a taste of one's own. This is play, so Math.random will do. */
function inventHistory() {
  const names = Object.keys(club.survey);
  const taste = names.map((name) => club.survey[name] * (LOVED[name] ?? 1) * Math.random() ** 3);
  const whole = taste.reduce((a, b) => a + b);
  const history = [];
  for (let film = 0; film < 25; film++) {
    let left = Math.random() * whole;
    let k = 0;
    while (k < names.length - 1 && (left -= taste[k]) > 0) k++;
    history.push(names[k]);
  }
  return history;
}

function historyOfThisTab() {
  const kept = sessionStorage.getItem("history");
  const history = kept ? JSON.parse(kept) : inventHistory();
  sessionStorage.setItem("history", JSON.stringify(history));
  return history;
}

function show(history) {
  const counts = new Map();
  for (const genre of history) counts.set(genre, (counts.get(genre) ?? 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([genre, count]) => {
    const row = document.createElement("div");
    const name = document.createElement("span");
    const bar = document.createElement("meter");
    const number = document.createElement("span");
    row.className = "row";
    name.textContent = genre;
    bar.max = history.length;
    bar.value = count;
    number.textContent = count;
    row.append(name, bar, number);
    return row;
  });
  element("history").replaceChildren(...rows);
}

/** A mechanism file, with its digest pinned. */
async function fileAt(address, read, maxEpsilon, digest) {
  const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
  return read(bytes, { maxEpsilon, maxCategories: 100, digest });
}

/** Some films of the history, as if watched since the last visit. */
const lately = (history) => Array.from({ length: 4 }, () => history[Math.floor(Math.random() * history.length)]);

/** The visits of this tab: one genre each, as a stream, with ε split, and without protection. */
async function startVisits(member, history) {
  const stream = await fileAt("visits/stream", loadStream, club.lifetime, club.stream);
  const split = await fileAt("visits/split", load, club.lifetime, club.split);
  const budget = await openBudget({ limit: club.lifetime, name: "visits " + member });
  const apart = await openBudget({ limit: club.lifetime, name: "apart " + member });
  const rows = JSON.parse(sessionStorage.getItem("visits") ?? "[]");

  const draw = async () => {
    const room = await budget.room(stream);
    element("room").value = room;
    element("left").textContent = `${Math.round(100 * room)} %`;
    element("rows").replaceChildren(...rows.map(({ watched, heard }, k) => {
      const row = document.createElement("tr");
      for (const text of [k + 1, [...new Set(watched)].join(", "), ...heard]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        if (heard.includes(text) && !watched.includes(text)) cell.className = "other";
        row.append(cell);
      }
      return row;
    }));
    ["own-stream", "own-split", "own-open"].forEach((id, j) => {
      const own = rows.filter(({ watched, heard }) => watched.includes(heard[j])).length;
      element(id).textContent = rows.length ? `${own} of ${rows.length}` : "";
    });
    element("visit").disabled = element("visits").disabled = rows.length >= club.visits;
  };
  const visit = async () => {
    const watched = lately(history);
    const epoch = "visit " + (rows.length + 1);
    const { category } = await budget.visit(stream, epoch, watched); // asked again, it is the same
    const other = await apart.release(split, epoch, watched);
    rows.push({ watched, heard: [category, other.category, watched[Math.floor(Math.random() * watched.length)]] });
    sessionStorage.setItem("visits", JSON.stringify(rows));
    element("heard").textContent = `The club hears: ${category}.`;
    await draw();
  };
  element("lifetime").textContent = club.lifetime;
  element("heard").textContent = "Nothing yet.";
  await draw();
  const visitUntil = async (count) => {
    element("visit").disabled = element("visits").disabled = true;
    try {
      while (rows.length < count) await visit();
    } catch (problem) {
      element("heard").textContent = `Nothing was told: ${problem.message}`;
    }
  };
  element("visit").addEventListener("click", () => visitUntil(rows.length + 1));
  element("visits").addEventListener("click", () => visitUntil(club.visits));
}

const member = memberOfThisTab();
const history = historyOfThisTab();
element("member").textContent = member;
show(history);

try {
  await startVisits(member, history);
} catch (problem) {
  element("heard").textContent = `Nothing can be told: ${problem.message}`;
}

try {
  const mechanism = await fileAt(club.collector + "/v1/mechanism", load, club.epsilon, club.digest);
  const budget = await openBudget({ limit: club.epsilon, name: "club " + member });
  const left = async () => {
    element("budget").textContent =
      `Privacy left for this member: ε = ${await budget.left()} of ${club.epsilon}. ${budget.notice}`;
  };
  await left();
  element("told").textContent = "Nothing yet.";
  element("release").disabled = element("crowd").disabled = false;

  element("release").addEventListener("click", async () => {
    element("release").disabled = true;
    try {
      const told = await budget.release(mechanism, EPOCH, history); // asked again, it is the same report
      await send(collector, told);
      element("told").textContent = `The club was told: ${told.category}. Asked again, it hears the same.`;
    } catch (problem) {
      element("told").textContent = `Nothing was told: ${problem.message}`;
    }
    await left();
    element("release").disabled = false;
  });

  element("crowd").addEventListener("click", async () => {
    element("crowd").disabled = true;
    const truth = Object.fromEntries(mechanism.categories.map((genre) => [genre, 0]));
    for (let done = 0; done < CROWD; done += BATCH) {
      const reports = [];
      for (let k = 0; k < BATCH; k++) {
        const films = inventHistory(); // each stands for a device of its own
        for (const genre of films) truth[genre] += 1 / films.length / CROWD;
        reports.push(report(mechanism, mechanism.release(films)));
      }
      await send(collector, reports);
      element("crowded").textContent = `${(done + BATCH).toLocaleString("en")} of ${CROWD.toLocaleString("en")} members have told one genre each.`;
    }
    document.body.dataset.truth = JSON.stringify(truth); // for the curious: what nobody but this page knows
    element("crowd").disabled = false;
  });
} catch (problem) {
  element("told").textContent = `Nothing can be released: ${problem.message}`;
}
document.body.dataset.ready = "yes";

/**
 * Questions to a worker: which sampler at an ε, and who is an invented person. The worker is this page's own script once more,
 * from memory; where a browser refuses that, the page computes by itself.
 */
import { choose, people, summarise } from "../src/choose.js";
import { TV, distanceOf, wasserstein } from "../src/distances.js";
import { samplerOf } from "../src/floors.js";
import { userOf } from "../src/laws.js";

const RECORDS = 40;
const NUMBERS = ["name", "options", "mean", "median", "p90", "p99", "maximum", "worstCase", "keepsPrior"];
const plain = (row) => Object.fromEntries(NUMBERS.map((key) => [key, row[key]]));

/** The sampler of a row, whole again. */
export const samplerFrom = ({ name, options }, q, epsilon) =>
  ({ ...samplerOf(name === "fitted" ? "power_caps" : name, q, epsilon, options), name });

/** Forty records as an invented user would have them: shares rounded down, the rest to the largest remainders. */
function recordsOf({ mine, own }) {
  const exact = own.map((share) => RECORDS * share);
  const counts = Array.from(exact, Math.floor);
  const order = [...exact.keys()].sort((i, j) => exact[j] - counts[j] - (exact[i] - counts[i]) || i - j);
  const left = RECORDS - counts.reduce((a, b) => a + b, 0);
  for (const j of order.slice(0, left)) counts[j]++;
  return Array.from(mine, (i, j) => [i, counts[j]]).filter(([, count]) => count > 0);
}

const ANSWERS = {
  choose({ q, geometry }, { epsilon, options }) {
    const { best, runnerUp, rows } = choose(q, epsilon, { ...options, geometry });
    return { epsilon, rows: rows.map(plain), best: rows.indexOf(best), runnerUp: runnerUp ? rows.indexOf(runnerUp) : -1 };
  },
  person({ q }, { number }) {
    const crowd = people(q);
    return recordsOf(crowd[number % crowd.length]);
  },
  /** One sampler on the users that the page holds. */
  measure({ q, geometry, users }, { epsilon, row }) {
    const sampler = samplerFrom(row, q, epsilon);
    const distance = geometry ? wasserstein(geometry) : TV;
    return summarise(Float64Array.from(users, (user) => distanceOf(sampler, userOf(user, q.length), distance)));
  },
};

let about;

/** The answer to a question about the data of the last context. */
function answer({ context, question }) {
  if (context) about = { ...context, q: Float64Array.from(context.q) };
  return ANSWERS[question.kind](about, question);
}

/** In the worker: answer one message after the other. */
export function work() {
  onmessage = ({ data }) => {
    try {
      postMessage({ answer: answer(data) });
    } catch (problem) {
      postMessage({ problem: problem.message });
    }
  };
}

const here = async (message) => answer(message);

/** What answers a message: a worker, or this thread where a browser or a server's policy refuses one. */
function started() {
  try {
    const code = new Blob([document.getElementById("code").textContent], { type: "text/javascript" });
    const worker = new Worker(URL.createObjectURL(code));
    let refused = false;
    let asked = () => {};
    worker.onerror = () => {
      refused = true;
      asked();
    };
    return (message) => new Promise((resolve, reject) => {
      asked = () => resolve(here(message));
      worker.onmessage = ({ data }) => ("problem" in data ? reject(new Error(data.problem)) : resolve(data.answer));
      if (refused) asked();
      else worker.postMessage(message);
    });
  } catch {
    return here;
  }
}

/** Questions and what is known of their answers; `changed` is called after every answer. */
export function engine(changed) {
  const run = started();
  let known = new Map();
  let waiting = [];
  let context = null;
  let busy = false;

  async function next() {
    if (busy || !waiting.length) return;
    busy = true;
    const question = waiting.shift();
    const mine = known;
    const message = { context, question };
    context = null;
    const entry = await run(message).then((found) => ({ answer: found }), (problem) => ({ problem: problem.message }));
    busy = false;
    mine.set(JSON.stringify(question), entry);
    if (mine === known) changed();
    next();
  }

  return {
    /** Other data: what was known about the last ones is forgotten. */
    about(given) {
      [known, waiting, context] = [new Map(), [], given];
    },
    /** { answer } or { problem }, or undefined where the question is not answered yet. */
    known: (question) => known.get(JSON.stringify(question)),
    /** Answer these next, the first one first, instead of those that are still waiting. */
    want(questions) {
      waiting = questions.filter((question) => !known.has(JSON.stringify(question)));
      next();
    },
  };
}

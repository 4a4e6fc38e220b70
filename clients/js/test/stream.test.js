/** Streams: every step of the vectors, states included; what does not fit is refused. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { join } from "node:path";
import { openBudget } from "../src/budget_node.js";
import { openWith } from "../src/budget.js";
import { loadStream } from "../src/stream.js";
import { certify } from "../src/certificate.js";
import { fromCounts, fromRecords } from "../src/counts.js";
import { wordsOf } from "../src/draw.js";
import { folder } from "./support/files.js";
import { prepareStream, stepFrom, stepLaw, unitsOf, unitsOfR } from "../src/steps.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/vectors/stream_draws.json", import.meta.url), "utf8")).files;
const files = vectors.filter((one) => !one.reason);
const POLICY = { maxEpsilon: 30, maxCategories: 1e6, digest: "any" };
const encode = (value) => new TextEncoder().encode(value);
const plainState = ({ step, low, high, last }) => ({ step, low: String(low), high: String(high), last });
const stateOf = (epsilon, { step, low, high, last }) => ({ epsilon, step, low: BigInt(low), high: BigInt(high), last });

/** Run with these bytes in place of the generator's. */
function onTape(bytes, run) {
  const own = crypto.getRandomValues;
  crypto.getRandomValues = (array) => (array.set(Buffer.from(bytes, "hex")), array);
  try {
    return run();
  } finally {
    crypto.getRandomValues = own;
  }
}

test("every step of the vectors: the law, what is released, and the next state", async () => {
  let steps = 0;
  for (const file of files) {
    const stream = await loadStream(encode(file.text), POLICY);
    for (const { state, records, counts, bytes, weights, released, after } of file.steps ?? []) {
      const given = stateOf(stream.epsilon, state);
      const found = onTape(bytes, () => (counts ? stream.releaseCounts(new Map(counts), given) : stream.release(records, given)));
      assert.equal(found.category, released, file.name);
      assert.deepEqual(plainState(found.state), after, file.name);
      assert.deepEqual(plainState(stream.fromText(stream.toText(found.state))), after);
      const { categories } = stream;
      const position = new Map(categories.map((name, i) => [name, i]));
      const inner = await ready(file.text);
      const user = counts ? fromCounts({ position }, new Map(counts)) : fromRecords({ position }, records);
      const law = stepLaw(inner, user, given);
      assert.deepEqual(unitsOf(law, categories.length).map(String), weights, file.name);
      steps++;
    }
  }
  assert.ok(steps > 200);
});

const known = new Map();
async function ready(text) {
  if (!known.has(text)) {
    const plain = JSON.parse(text);
    const [up, down] = plain.ratio.split("/").map(BigInt);
    known.set(text, prepareStream({
      ...plain, n: plain.categories.length, prior: plain.prior.map(BigInt), start: BigInt(plain.start), ...unitsOfR(up, down), epsilon: plain.epsilon.split("/"),
    }));
  }
  return known.get(text);
}

test("files of the vectors that are no streams are refused, each for its reason", async () => {
  const wrong = vectors.filter((one) => one.reason);
  assert.ok(wrong.length > 20);
  for (const { name, text, reason } of wrong) await assert.rejects(loadStream(encode(text), POLICY), { reason }, name);
});

test("a lost state releases the prior whoever the user is", async () => {
  for (const { text } of [files[2], files.find((one) => one.name === "nearest stream, a tree")]) {
    const inner = await ready(text);
    const prior = inner.prior.map((one) => String(one << 22n));
    const stream = await loadStream(encode(text), POLICY);
    for (const mine of [[0], [1, 3], []])
      assert.deepEqual(unitsOf(stepLaw(inner, { mine, counts: mine.map(() => 3n) }, stream.lost(4, null)), inner.n).map(String), prior);
    assert.equal(stream.release(["rare"], stream.lost(4, null)).state.low, inner.one);
  }
});

test("a lost state with its last release draws the public law around it, which must be named", async () => {
  for (const name of ["stream, persistent", "nearest stream, persistent"]) {
    const { text } = files.find((one) => one.name === name);
    const inner = await ready(text);
    const stream = await loadStream(encode(text), POLICY);
    const kept = inner.prior.map((one) => (one * BigInt(1024 - inner.persistence)) / 1024n || 1n);
    kept[2] += (1n << 40n) - kept.reduce((x, y) => x + y);
    const lost = stream.lost(4, stream.categories[2]);
    assert.deepEqual(stream.fromText(stream.toText(lost)), { ...lost });
    for (const mine of [[0], [1, 3], []]) {
      const user = { mine, counts: mine.map(() => 3n) };
      assert.deepEqual(unitsOf(stepLaw(inner, user, lost), inner.n), kept.map((one) => one << 22n));
      assert.deepEqual(unitsOf(stepLaw(inner, user, stream.lost(4, null)), inner.n), inner.prior.map((one) => one << 22n));
    }
    const { state, category } = stream.release(["rare"], lost);
    assert.deepEqual([state.low, state.high, state.step], [lost.low, lost.high, 5]);
    assert.equal(stream.categories[state.last], category);
    for (const wrong of [[], [4], [4, undefined], [4, 2], [4, "nowhere"], [-1, null], ["4", null]])
      assert.throws(() => stream.lost(...wrong), { reason: "call" }, JSON.stringify(wrong));
  }
});

test("a record put together from two is noticed, and one of which a part is missing", async () => {
  const stream = await loadStream(encode(files.find((one) => one.name === "stream, persistent").text), POLICY);
  assert.equal(stream.toText(stream.start()).split(" ").length, 6);
  const after = (state, k) => (k ? after(stream.release(["rare"], state).state, k - 1) : state);
  const [first, second] = [1, 2].map((k) => stream.toText(after(stream.start(), k)).split(" "));
  for (let mask = 1; mask < 63; mask++) {
    const fields = first.map((_, i) => ((mask >> i) & 1 ? first : second)[i]).join(" ");
    if (fields === first.join(" ") || fields === second.join(" ")) continue;
    assert.throws(() => stream.fromText(fields), { reason: "budget" }, fields);
  }
  const whole = stream.toText({ ...stream.start(), step: 7, low: 1n << 60n, high: 1n << 61n, last: 12 });
  for (let length = 0; length < whole.length; length++)
    for (const part of [whole.slice(0, length), whole.slice(length + 1)]) assert.throws(() => stream.fromText(part), { reason: "budget" }, part);
  assert.equal(stream.toText({ ...stream.start(), step: 7, low: 1n << 60n, high: 1n << 61n, last: 3 }), CHECKED);
});

/** What Python writes: tests/release/test_stream.py has the same. */
const CHECKED = "8/1 7 1152921504606846976 2305843009213693952 3 6a2a5f1a";

test("states that cannot be, files of other kinds and changed ones are refused", async () => {
  const stream = await loadStream(encode(files[0].text), POLICY);
  const start = stream.start();
  for (const wrong of [undefined, {}, { ...start, epsilon: "5/1" }, { ...start, low: 1n }, { ...start, high: start.high << 40n }, { ...start, step: -1 }, { ...start, last: -1 }])
    assert.throws(() => stream.release([], wrong), { reason: "call" });
  for (const text of ["", "1 2 3", "0 1 1 -", "x", "8/1 0 1 1 - e10a9c33"]) assert.throws(() => stream.fromText(text), /budget|call|damaged|needed/);
  const plain = JSON.parse(files[0].text);
  await assert.rejects(loadStream(encode(JSON.stringify({ ...plain, kind: "box" })), POLICY), { reason: "format" });
  const changes = [{ start: "1" }, { start: 5 }, { pace: [] }, { pace: [300] }, { samples: 1 }, { persistence: 1024 }, { prior: plain.prior.map(() => "1") }];
  for (const change of changes) await assert.rejects(loadStream(encode(JSON.stringify({ ...plain, ...change })), POLICY));
  await assert.rejects(certify(new Map([["format", "sottovoce-mechanism"], ["kind", "stream"]])), { reason: "format" });
});

test("a long stream keeps its state small, and its bounds together", async () => {
  const inner = await ready(files[3].text);
  let state = (await loadStream(encode(files[3].text), POLICY)).start();
  for (let k = 0; k < 2000; k++) {
    const word = wordsOf(crypto.getRandomValues(new Uint8Array(8)))[0];
    [, state] = stepFrom(inner, { mine: [k % 5], counts: [1n] }, state, word);
  }
  assert.ok((state.high - state.low) << 10n < state.low);
  assert.ok(state.high.toString(2).length <= 62);
});

test("twenty visits cost one epsilon, and asking again gives the same", async () => {
  const stream = await loadStream(encode(files[2].text), POLICY);
  const path = join(folder(), "budget.json");
  const budget = await openBudget({ path, limit: 8 });
  const visits = [];
  for (let k = 0; k < 20; k++) visits.push(await budget.visit(stream, `visit ${k}`, ["rare", "some"]));
  assert.equal(await budget.left(), 0);
  const room = await budget.room(stream);
  assert.ok(room >= 0 && room < 1);
  assert.ok(Math.abs(stream.room(stream.lost(0, null))) < 1e-12);
  const again = await openBudget({ path, limit: 8 });
  const all = await Promise.all(visits.map((_, k) => again.visit(stream, `visit ${k}`, ["most"])));
  assert.deepEqual(all, visits);
  const { streams } = JSON.parse(readFileSync(path, "utf8"));
  assert.equal(streams.length, 1);
  assert.equal(stream.fromText(streams[0][1]).step, 20);
  const small = await openBudget({ path: join(folder(), "budget.json"), limit: 7 });
  await assert.rejects(small.visit(stream, "e", ["rare"]), { reason: "budget" });
  assert.equal(await small.left(), 7);
  await assert.rejects(again.visit({ ...stream, start: undefined }, "e", []), { reason: "call" });
  await assert.rejects(small.release(stream, "e", ["rare"]), { reason: "call" });
  assert.equal(await small.left(), 7);
});

test("a stream with a geometry is visited like any other", async () => {
  const stream = await loadStream(encode(files.find((one) => one.name === "nearest stream, persistent").text), POLICY);
  const budget = await openBudget({ path: join(folder(), "budget.json"), limit: 8 });
  for (let k = 0; k < 20; k++) await budget.visit(stream, `visit ${k}`, ["rare", "some"]);
  assert.equal(await budget.left(), 0);
  await assert.rejects(budget.release(stream, "e", ["rare"]), { reason: "call" });
});

test("a device that loses power at any update never uses a state twice", async () => {
  const stream = await loadStream(encode(files[2].text), POLICY);
  const store = { state: null, left: 0 };
  store.update = async (change) => {
    const next = change(structuredClone(store.state));
    if (store.left-- <= 0) throw new Error("no power"); // drawn, and not stored
    store.state = next;
  };
  const shown = new Map();
  for (let k = 0; k < 60; k++) {
    store.left = k % 4;
    try {
      const budget = await openWith(store, { limit: 8 });
      for (const epoch of [`e${k >> 2}`, `e${(k >> 2) + 1}`]) {
        const { category, id } = await budget.visit(stream, epoch, ["rare"]);
        if (shown.has(epoch)) assert.equal(shown.get(epoch), id);
        shown.set(epoch, id);
        assert.ok(stream.categories.includes(category));
      }
    } catch (problem) {
      assert.equal(problem.message, "no power");
    }
  }
  assert.equal(stream.fromText(store.state.streams[0][1]).step, store.state.answers.length);
  assert.ok(shown.size > 10);
});

test("a damaged state releases nothing", async () => {
  const stream = await loadStream(encode(files[2].text), POLICY);
  let state = null;
  const store = { update: async (change) => (state = change(structuredClone(state))) };
  const budget = await openWith(store, { limit: 8 });
  await budget.visit(stream, "a", ["rare"]);
  const { answers } = structuredClone(state);
  for (const damaged of [null, {}, 5]) {
    state.answers[0][2] = damaged;
    await assert.rejects(budget.visit(stream, "a", ["rare"]), { reason: "budget" }, JSON.stringify(damaged));
  }
  state.answers = answers;
  state.streams[0][1] = "8/1 0 1 1 - e10a9c33"; // bounds that no stream has
  await assert.rejects(budget.visit(stream, "b", ["rare"]), { reason: "budget" });
  state.streams = [["x"]];
  await assert.rejects(budget.visit(stream, "b", ["rare"]), { reason: "budget" });
});

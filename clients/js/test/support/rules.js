/**
 * What no vector shows: policy, groups, users, budget, lock and worker. Each check takes the address of a folder `src` and
 * fails by an assertion; test/rules.test.js runs it on the client and on planted faults.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { client, countsOf, opened } from "./checks.js";
import { folder, readVectors } from "./files.js";
import { everyone, law } from "./laws.js";
import { box, bytes, groups } from "./made.js";
import { memory } from "./memory.js";

const N = 1n << 62n;
const ANY = { maxEpsilon: 100, maxCategories: 1000, digest: "any" };
const LETTERS = ["a", "b", "c", "d"];
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const part = (source, name) => import(`${source}/${name}.js`);

/** What is refused, and why; anything else fails the check. */
const refused = (run, reason, message = /./) => {
  const fits = (problem) => problem.name === "Refused" && problem.reason === reason && message.test(problem.message);
  const check = async () => run();
  return assert.rejects(check, (problem) => fits(problem) || assert.fail(`not ${reason}: ${problem.stack}`));
};
const accepted = (run) => assert.doesNotReject(async () => run());

/** Run with other members of an object, and put its own back. */
async function instead(owner, members, run) {
  const own = Object.keys(members).map((name) => [name, Object.getOwnPropertyDescriptor(owner, name)]);
  for (const [name, value] of Object.entries(members))
    Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  try {
    return await run();
  } finally {
    for (const [name, before] of own) {
      delete owner[name];
      if (before) Object.defineProperty(owner, name, before);
    }
  }
}

/** The bytes of words of 62 bits. */
function tape(words) {
  const view = new DataView(new ArrayBuffer(8 * words.length));
  words.forEach((word, j) => view.setBigUint64(8 * j, word << 2n, true));
  return new Uint8Array(view.buffer);
}

/** A budget in memory. */
async function inMemory(source, limit) {
  const store = { state: null, update: async (change) => (store.state = change(structuredClone(store.state))) };
  const { openWith } = await part(source, "budget");
  return [await openWith(store, { limit }), store];
}

const VISITED = new URL("../../../../tests/vectors/stream_draws.json", import.meta.url);

/** A budget with an answer of a mechanism and two of a stream, and what can be asked of it then. */
async function used(source) {
  const mechanism = await (await part(source, "core")).load(bytes(box(LETTERS)), ANY);
  const { text } = JSON.parse(readFileSync(VISITED, "utf8")).files.find((one) => one.name === "stream, persistent");
  const stream = await (await part(source, "stream")).loadStream(new TextEncoder().encode(text), ANY);
  const [budget, store] = await inMemory(source, 100);
  await budget.release(mechanism, "1", ["a"]);
  await budget.visit(stream, "1", ["rare"]);
  store.first = structuredClone(store.state.streams);
  await budget.visit(stream, "2", ["rare"]);
  const ask = (one) => ({
    again: () => one.release(mechanism, "1", ["a"]),
    "again of the stream": () => one.visit(stream, "1", ["rare"]),
    room: () => one.room(stream),
    left: () => one.left(),
    "a new one": () => one.release(mechanism, "3", ["a"]),
    "one more of the stream": () => one.visit(stream, "3", ["rare"]),
  });
  return { budget, store, ask };
}

/** What somebody or something may do to a state in the storage, and any question is refused. */
const DAMAGE = {
  "spent is 0": (state) => void (state.spent = 0),
  "spent lacks one millionth": (state) => void state.spent--,
  "spent has one millionth too many": (state) => void state.spent++,
  "spent is above the limit": (state) => void (state.spent = 1e15),
  "spent is a text": (state) => void (state.spent = String(state.spent)),
  "an answer is gone, its cost is not": (state) => void state.answers.shift(),
  "an answer twice": (state) => void state.answers.unshift(structuredClone(state.answers[0])),
  "two answers of one key and epoch": (state) => {
    const other = structuredClone(state.answers[0]);
    other[2].category = LETTERS.find((name) => name !== other[2].category);
    state.answers.unshift(other);
  },
  "an answer and its cost twice": (state) => {
    state.answers.push(structuredClone(state.answers[0]));
    state.spent += 1000000;
  },
  "an answer that costs nothing": (state) => {
    state.answers[0][3] = 0;
    state.spent -= 1000000;
  },
  "an answer that gives ε back": (state) => {
    state.answers[0][3] = -1000000;
    state.spent -= 2000000;
  },
  "a cost that is no number": (state) => void (state.answers[0][3] = null),
  "no state of a stream": (state) => void (state.streams = []),
  "no states of streams": (state) => void delete state.streams,
  "states that are no list": (state) => void (state.streams = null),
  "a state that is no text": (state) => void (state.streams[0][1] = 5),
  "a state back at the start": (state) => {
    const [epsilon, , low, high] = state.streams[0][1].split(" ");
    state.streams[0][1] = [epsilon, 0, low, high, "-", "00000000"].join(" ");
  },
  "the state of one visit before": (state, first) => void (state.streams = first),
  "a state under another name": (state) => void (state.streams[0][0] += " north"),
  "two states of one stream": (state, first) => void state.streams.unshift(first[0]),
  "two states of one stream, and the cost": (state) => {
    state.streams.push([...state.streams[0]]);
    state.spent += 8000000;
  },
  "the cost of a stream is not counted": (state) => void (state.spent -= 8000000),
  "an answer of a stream is to be drawn": (state) => void (state.answers[1][2] = null),
  "a list with a hole": (state) => void (state.answers.length += 1),
  "an entry with more": (state) => void state.answers[0].push(1),
  "the state of an earlier version": (state) => void (state.version = 1),
};

/** What a state does not show by itself, only to the mechanism that it is about. */
const NOT_ITS_OWN = {
  again: (state) => {
    state.answers[0][3] = 1;
    state.spent -= 999999;
  },
  "again of the stream": (state) => {
    for (const entry of state.answers.slice(1)) entry[3] = "7/1";
    state.streams[0][0] = "7/1";
    state.spent -= 1000000;
  },
  "one more of the stream": (state) => void (state.streams[0][1] = state.streams[0][1].slice(0, -9)),
};

/** The page's side of a worker that runs here; the timers and the clock are those of the caller. */
async function far(source) {
  await import(`${source}/worker.js?${Math.random()}`);
  const { onmessage } = globalThis;
  delete globalThis.onmessage;
  const { remote } = await part(source, "remote");
  return remote({
    addEventListener: (_, listener) => (globalThis.postMessage = (reply) => listener({ data: structuredClone(reply) })),
    postMessage: (asked) => onmessage({ data: structuredClone(asked) }),
  });
}

/** How long a worker waits before it answers, where each call of the generator takes 7 milliseconds. */
async function waits(run) {
  let clock = 1000;
  const found = [];
  const own = crypto.getRandomValues.bind(crypto);
  const getRandomValues = (array) => ((clock += 7), own(array));
  const setTimeout = (reply, milliseconds) => (found.push(milliseconds), queueMicrotask(reply));
  await instead(performance, { now: () => clock }, () =>
    instead(crypto, { getRandomValues }, () => instead(globalThis, { setTimeout }, run)));
  return found;
}

const boot = () => {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return null;
  }
};
/** The number of a process that has ended. */
const dead = () => spawnSync(process.execPath, ["-e", ""]).pid;

export const RULES = {
  async "a double of the policy means itself"(source) {
    const { load } = await part(source, "core");
    const file = bytes(box(LETTERS, { epsilon: "3/10" }));
    await refused(() => load(file, { ...ANY, maxEpsilon: 0.3 }), "policy"); // the double 0.3 is below 3/10
    for (const maxEpsilon of ["3/10", 0.30000000000000004]) await accepted(() => load(file, { ...ANY, maxEpsilon }));
  },

  async "an expected digest has 64 digits"(source) {
    const { load } = await part(source, "core");
    const file = box(LETTERS);
    const wrong = [file.digest.slice(0, 8) + "…", file.digest.slice(0, 12), file.digest.slice(0, 63), file.digest + "0", file.digest.toUpperCase(), "ANY", 5];
    for (const digest of wrong) {
      await refused(() => load(bytes(file), { ...ANY, digest }), "policy", /64/);
      await refused(() => load(bytes(file), { ...ANY, digest: undefined, digests: [file.digest, digest] }), "policy", /64/);
    }
    await refused(() => load(bytes(file), { ...ANY, digest: "0".repeat(64) }), "policy", /expected/);
    await refused(() => load(bytes(file), { ...ANY, digest: undefined, digests: [] }), "policy");
    await accepted(() => load(bytes(file), { ...ANY, digest: file.digest }));
  },

  async "the categories are exactly those of the policy"(source) {
    const { load } = await part(source, "core");
    const { loadGroups } = await part(source, "groups");
    const file = bytes(box(LETTERS));
    const numbers = bytes(box([1, 2]));
    const several = (other) => bytes(groups([["one", box(LETTERS)], ["two", box(other)]]));
    const judge = (found, categories) => load(found, { ...ANY, categories });
    await accepted(() => judge(file, ["d", "c", "b", "a"]));
    await accepted(() => judge(numbers, [2, 1]));
    await accepted(() => judge(file, undefined));
    const invalid = [[], null, "abcd", new Set(LETTERS), ["a", "a"], ["a", 1], [1.5], [true], [2 ** 53]];
    const others = [["a", "b", "c"], ["a", "b", "c", "e"], ["a", "b", "c", "d", "e"], ["A", "b", "c", "d"]];
    for (const categories of [...invalid, ...others]) await refused(() => judge(file, categories), "policy", /categories/);
    await refused(() => judge(numbers, ["1", "2"]), "policy");
    await accepted(() => loadGroups(several(["d", "b", "c", "a"]), { ...ANY, categories: LETTERS }));
    for (const other of [["a", "b", "c"], ["a", "b", "c", "e"], [...LETTERS, "e"]])
      await refused(() => loadGroups(several(other), { ...ANY, categories: LETTERS }), "policy");
  },

  async "bytes are bytes, and one release is one sample"(source) {
    const { load } = await part(source, "core");
    const { loadGroups } = await part(source, "groups");
    const { loadStream } = await part(source, "stream");
    const file = box(LETTERS);
    for (const wrong of [JSON.stringify(file), file, undefined, null, [1, 2], {}])
      for (const run of [load, loadGroups, loadStream]) await refused(() => run(wrong, ANY), "call", /must be a Uint8Array, .*arrayBuffer/);
    await accepted(() => load(bytes(file), ANY));
    await accepted(() => load(bytes(file).buffer, ANY));
    await refused(() => load(bytes({ ...file, kind: "stream", version: 2 }), ANY), "format", /use loadStream of sottovoce\/stream/);
    await refused(() => loadStream(bytes(file), ANY), "format", /use load of sottovoce$/);
    await refused(() => load(bytes(groups([["one", file]])), ANY), "format", /use loadGroups of sottovoce\/groups/);
    for (const other of [{ kind: "secret" }, { bits: 53 }, { version: 3 }])
      await refused(() => load(bytes({ ...file, ...other }), ANY), "format", /^format: this client releases box, .*survey/);
    await refused(() => load(bytes({ format: "secret" }), ANY), "format", /^format: not a mechanism file$/);
  },

  async "the length of a file is counted in bytes"(source) {
    const { load } = await part(source, "core");
    const name = "字".repeat(1000); // 3 bytes each, one UTF-16 unit
    const most = 65536 + 1024 * 2;
    const two = { ...ANY, maxCategories: 2 };
    const text = JSON.stringify(box([name]));
    const padded = (length) => bytes(text + " ".repeat(length - bytes(text).length));
    await accepted(() => load(padded(most), two));
    await refused(() => load(padded(most + 1), two), "text");
  },

  async "no key is twice, however deep it stands"(source) {
    const { loadGroups } = await part(source, "groups");
    const text = JSON.stringify(groups([["one", box(LETTERS, { options: { x: "y" } })]]));
    await accepted(() => loadGroups(bytes(text), ANY));
    for (const [once, twice] of [['"x":"y"', '"x":"y","x":"y"'], ['"bits":62', '"bits":62,"bits":62'], ['"by":"age"', '"by":"age","by":"age"']])
      await refused(() => loadGroups(bytes(text.replace(once, twice)), ANY), "text");
    const [, group] = /"groups":\{(.*)\},"digest":"[0-9a-f]*"\}$/.exec(text);
    await refused(() => loadGroups(bytes(text.replace(group, () => `${group},${group}`)), ANY), "text");
  },

  async "a group is found by its own name only, and told"(source) {
    const { report } = await part(source, "core");
    const { loadGroups } = await part(source, "groups");
    const file = groups([["young", box(LETTERS)], ["__proto__", box(["x", "y"])], ["old", box(LETTERS)]]);
    const found = await loadGroups(bytes(file), ANY);
    for (const name of ["constructor", "toString", "hasOwnProperty", "Young", "you", "", undefined, 0])
      await refused(() => found.get(name), "user");
    assert.deepEqual(found.names, ["young", "__proto__", "old"]);
    assert.deepEqual(found.get("__proto__").categories, ["x", "y"]);
    assert.equal(found.by, null);
    assert.equal((await loadGroups(bytes(file), { ...ANY, digest: file.digest })).by, "age");
    assert.equal(found.get("young").digest, found.get("old").digest);
    for (const group of ["young", "old"]) {
      const told = report(found.get(group), "a");
      assert.deepEqual(Object.keys(told), ["mechanism", "id", "category", "group"]);
      assert.equal(told.group, group);
      assert.ok(Object.isFrozen(found.get(group)));
    }
  },

  async "a user that is malformed is refused in both modes, and reads no byte"(source) {
    const mechanism = await (await part(source, "core")).load(bytes(box(LETTERS)), ANY);
    const none = (run, reason) => instead(crypto, { getRandomValues: () => assert.fail("a byte was read") }, () => refused(run, reason));
    for (const options of [undefined, { unknown: "prior" }, { unknown: "error" }]) {
      for (const records of ["ab", "", null, undefined, new Set(["a"]), { 0: "a", length: 1 }, new Map([["a", 1]])])
        await none(() => mechanism.release(records, options), "user");
      for (const records of [[0.25, 0.75], [0, 0.5, 0.5, 0], [1, 0, 0, 0], [NaN, 0.5], new Float64Array([0.25, 0.75])])
        await none(() => mechanism.release(records, options), "user");
      for (const counts of [[["a", 2 ** 53 - 1], ["b", 1]], [["a", 2 ** 53]], [["a", -1]], [["a", 1.5]], [["a", "1"]], [["a", NaN]], [["a", 1n]]])
        await none(() => mechanism.releaseCounts(new Map(counts), options), "user");
      for (const count of [-1, 1.5, 2 ** 53, "1"])
        await none(() => mechanism.releaseCounts(new Map([["a", 1], ["nowhere", count]]), options), "user");
      await none(() => mechanism.releaseCounts({ a: 1 }, options), "user");
      await accepted(() => mechanism.releaseCounts(new Map([["a", 2 ** 53 - 1]]), options));
    }
    for (const options of [{ unknown: "drop" }, { unknown: null }, { unknown: true }, { Unknown: "error" }, "error"]) {
      await none(() => mechanism.release(["a"], options), "call");
      await none(() => mechanism.releaseCounts(new Map([["a", 1]]), options), "call");
    }
    for (const p of [[NaN, 0, 0, 1], [NaN, NaN, NaN, NaN], [Infinity, 0, 0, 0], [-0.5, 0.5, 0.5, 0.5], [0.5, 0.5], [0.1, 0, 0, 0], ["0", "0", "0", "0"], [, 0, 0, 0]])
      await none(() => mechanism.releaseShares(p), "user");
  },

  async "unknown records count for nothing, or refuse if that is asked"(source) {
    const sv = await client(source);
    const mechanism = await sv.load(bytes(box(LETTERS)), ANY);
    const numbers = await sv.load(bytes(box([1, 2])), ANY);
    const strange = ["nowhere", 1, "A", " a", null, {}, NaN];
    const error = { unknown: "error" };
    const parts = (await opened(sv, bytes(box(LETTERS)))).get(undefined);
    const same = (user, other) => assert.deepEqual(countsOf(sv, parts, user), countsOf(sv, parts, other));
    for (const name of strange) {
      same({ records: [name, "a", "b", "a"] }, { counts: [["a", 2], ["b", 1]] });
      same({ records: [name] }, { records: [] });
      same({ counts: [[name, 2 ** 53 - 1], ["a", 2 ** 53 - 1]] }, { counts: [["a", 2 ** 53 - 1]] });
      for (const count of [0, 1]) await refused(() => mechanism.releaseCounts(new Map([["a", 1], [name, count]]), error), "user");
      await refused(() => mechanism.release([name, "a"], error), "user");
      await accepted(() => mechanism.release([name]));
    }
    assert.equal(countsOf(sv, (await opened(sv, bytes(box([1, 2])))).get(undefined), { records: ["1", "2"] }).mine.length, 0);
    await refused(() => numbers.release([1, "2"], error), "user");
    await accepted(() => mechanism.release([]));
    await accepted(() => mechanism.releaseCounts(new Map([["a", 0]])));
    await refused(() => mechanism.release([], error), "user");
    await refused(() => mechanism.releaseCounts(new Map(), error), "user");
    await refused(() => mechanism.releaseCounts(new Map([["a", 0]]), error), "user");
    for (const p of [[0, 0, 0, 0], new Float32Array(4), [-0, 0, 0, 0]]) {
      await accepted(() => mechanism.releaseShares(p));
      assert.equal(sv.fromShares(parts, p).mine.length, 0);
    }
  },

  async "a user without records is released as the public"(source) {
    const sv = await client(source);
    const { draws_box, draws_kernel, draws_response, draws_survey } = readVectors();
    let unkept = 0;
    for (const { text } of [...draws_box.files, ...draws_kernel.files, ...draws_response.files, ...draws_survey.files.slice(0, 4)]) {
      const one = (await opened(sv, bytes(text))).get(undefined);
      if (one.n > 100) continue;
      const nobody = sv.fromRecords(one, []);
      const weights = law(sv, one, everyone(one));
      const total = weights.reduce((a, b) => a + b);
      const ends = [N - 1n, 0n];
      let end = 0n;
      for (const weight of one.kind === "box" ? weights : everyone(one).counts) ends.push((end += weight) - 1n, end % N);
      const draw = (user, words) => sv.draw(one, user, tape(words));
      for (const word of ends)
        for (const u of one.kind === "box" ? [0n] : ends) {
          const words = [word, u, (u * 7n + 5n) % N].slice(0, sv.WORDS[one.kind]);
          assert.equal(draw(nobody, words), draw(everyone(one), words));
        }
      if (one.kind !== "box") continue;
      assert.equal(total, N);
      if (one.keeps) assert.deepEqual(weights, one.prior);
      else unkept++;
      end = 0n;
      for (const [i, weight] of weights.entries())
        if (weight) {
          assert.equal(draw(nobody, [end]), i);
          assert.equal(draw(nobody, [(end += weight) - 1n]), i);
        }
    }
    assert.ok(unkept);
  },

  async "a nearest law that left its box is not released"(source) {
    const { nearestLaw } = await part(source, "nearest");
    const { draw, prepare } = await part(source, "draw");
    const half = N / 2n;
    const tree = { parents: [2, 2], lengths: [1, 1] };
    assert.deepEqual(nearestLaw([N, 0n], [1n, half], [half, N], tree), [half, half]);
    for (const [low, high] of [[[1n, 1n], [half, half - 1n]], [[half, half + 1n], [N, N]]])
      await refused(() => nearestLaw([N, 0n], low, high, tree), "certificate", /left its box/);
    const box = { kind: "nearest", n: 2, prior: [half, half], keeps: true, ...tree, low: [half, half + 1n], high: [N, N] };
    await refused(() => draw(prepare(box), { mine: [0], counts: [1n] }, tape([0n])), "certificate", /left its box/);
  },

  async "a budget counts exactly, by mechanism, group and epoch"(source) {
    const sv = await client(source);
    const mechanism = await sv.load(bytes(box(LETTERS)), ANY);
    const [cents, held] = await inMemory(source, "1/3");
    assert.equal(held.state.limit, 333333);
    await refused(() => cents.release({ ...mechanism, epsilon: "1/3" }, "1", ["a"]), "budget");
    const [budget, store] = await inMemory(source, 100);
    const spent = async (epsilon, epoch) => {
      const before = store.state.spent;
      await budget.release({ ...mechanism, epsilon }, epoch, ["a"]);
      return store.state.spent - before;
    };
    assert.equal(await spent(`${10n ** 30n + 1n}/${10n ** 30n}`, "just above 1"), 1000001);
    assert.equal(await spent("7/100", "0.07·1e6 is above 70,000 in doubles"), 70000);
    const first = await budget.release(mechanism, "2026-1", ["a"]);
    const later = await budget.release(mechanism, "2026-11", ["a"]);
    assert.notEqual(first.id, later.id);
    assert.deepEqual(await budget.release(mechanism, "2026-1", ["b"]), first);
    assert.deepEqual(await budget.release(mechanism, "2026-11", ["b"]), later);

    const found = await sv.loadGroups(bytes(groups([["young", box(LETTERS)], ["old", box(LETTERS)]])), ANY);
    const before = store.state.spent;
    const told = [];
    for (const name of ["young", "old", "young"]) told.push(await budget.release(found.get(name), "groups", ["a"]));
    assert.deepEqual(told.map((one) => one.group), ["young", "old", "young"]);
    assert.deepEqual(told[2], told[0]);
    assert.equal(store.state.spent - before, 2000000);
  },

  async "what a budget has stored fits together, or nothing is released"(source) {
    const { budget, store, ask } = await used(source);
    const whole = structuredClone(store.state);
    for (const [name, change] of Object.entries(DAMAGE)) {
      const state = structuredClone(whole);
      store.state = change(state, store.first) ?? state;
      const before = JSON.stringify(store.state);
      for (const [what, run] of Object.entries(ask(budget))) {
        const problem = await run().then(() => null, (found) => found);
        assert.equal(problem?.reason, "budget", `${name}: ${what}`);
        assert.equal(JSON.stringify(store.state), before, name);
      }
    }
    for (const [what, change] of Object.entries(NOT_ITS_OWN)) {
      store.state = structuredClone(whole);
      change(store.state);
      const before = JSON.stringify(store.state);
      await refused(ask(budget)[what], "budget");
      assert.equal(JSON.stringify(store.state), before, what);
    }
    store.state = structuredClone(whole);
    for (const run of Object.values(ask(budget))) await accepted(run);
  },

  async "a budget passes `unknown` on, and charges nothing for what is refused"(source) {
    const mechanism = await (await part(source, "core")).load(bytes(box(LETTERS)), ANY);
    const [budget, store] = await inMemory(source, 100);
    const error = { unknown: "error" };
    for (const records of [[], ["nowhere"], ["nowhere", "a"]]) {
      await refused(() => budget.release(mechanism, "e", records, error), "user");
      await refused(() => budget.releaseCounts(mechanism, "e", new Map(records.map((name) => [name, 1])), error), "user");
    }
    await refused(() => budget.release(mechanism, "e", "ab"), "user");
    await refused(() => budget.release(mechanism, "e", ["a"], { unknown: "drop" }), "call");
    assert.equal(store.state.spent, 0);
    assert.ok(LETTERS.includes((await budget.release(mechanism, "1", ["nowhere"])).category));
    assert.ok(LETTERS.includes((await budget.releaseCounts(mechanism, "2", new Map())).category));
    assert.equal(store.state.spent, 2000000);
  },

  async "only a lock whose process has certainly ended is removed"(source) {
    const { openBudget } = await part(source, "budget_node");
    const own = { host: hostname(), place: boot(), id: dead(), began: "0" };
    const elsewhere = { ...own, place: `${"0".repeat(36)} pid:[1]` };
    const foreign = [{ ...own, host: own.host + "2" }, elsewhere, { ...own, place: null }, { ...own, id: process.pid }];
    if (own.place) foreign.push({ ...own, place: own.place.replace(/pid:.*/, "pid:[1]") });
    for (const text of [...foreign.map((one) => JSON.stringify(one)), `${own.host} ${own.id}`, "", "null"]) {
      const path = join(folder(), "budget.json");
      writeFileSync(path + ".lock", text);
      const opening = openBudget({ path, limit: 3 });
      await pause(60);
      assert.ok(existsSync(path + ".lock") && readFileSync(path + ".lock", "utf8") === text, `removed: ${text}`);
      unlinkSync(path + ".lock");
      assert.equal((await opening).fresh, true);
    }
    const path = join(folder(), "budget.json");
    writeFileSync(path + ".lock", JSON.stringify(elsewhere));
    const now = Date.now;
    let late = 0;
    await instead(Date, { now: () => now() + 6000 * late++ }, () => refused(() => openBudget({ path, limit: 3 }), "budget", /delete .*lock/));
    if (!own.place) return;
    writeFileSync(path + ".lock", JSON.stringify(own));
    assert.equal((await openBudget({ path, limit: 3 })).fresh, true);
  },

  async "what is stored is forced to the disk before it takes its place"(source) {
    const path = join(folder(), "budget.json");
    const file = await open(path + ".probe", "w");
    const kind = Object.getPrototypeOf(file);
    await file.close();
    const { openBudget } = await part(source, "budget_node");
    const seen = [];
    const { sync } = kind;
    const spy = function () {
      seen.push([existsSync(path + ".new") && readFileSync(path + ".new", "utf8"), existsSync(path)]);
      return sync.call(this);
    };
    await instead(kind, { sync: spy }, () => openBudget({ path, limit: 3 }));
    const text = readFileSync(path, "utf8");
    assert.ok(seen.some(([written, there]) => written === text && !there), "the new file was not forced");
    assert.ok(seen.some(([written, there]) => !written && there), "the folder was not forced");
  },

  async "each load of a worker is an entry of its own"(source) {
    await instead(globalThis, { indexedDB: memory(), postMessage: null }, async () => {
      const worker = await far(source);
      const file = bytes(box(LETTERS));
      const counted = await worker.load(file, ANY, { grid: 1, budget: { limit: 1 } });
      const other = await worker.load(file, ANY, { grid: 1 });
      const first = await counted.release(["a"], "1");
      assert.deepEqual(await counted.release(["b"], "1"), first);
      await refused(() => counted.release(["a"], "2"), "budget");
      await refused(() => counted.release(["a"]), "budget");
      assert.notEqual((await other.release(["a"])).id, (await other.release(["a"])).id);
      assert.equal(counted.handle, undefined);
      await refused(() => other.release(["nowhere"], undefined, { unknown: "error" }), "user");
      await refused(() => other.releaseCounts(new Map(), undefined, { unknown: "error" }), "user");
      await refused(() => other.release(["a"], { unknown: "error" }), "call");
      assert.ok(LETTERS.includes((await other.release([])).category));
      for (const options of [{ grid: 0 }, { grid: 20000 }, { grid: "20" }, { budget: null }]) await refused(() => worker.load(file, ANY, options), "call");
    });
  },

  async "a worker answers on the grid of its entry, counted from the question"(source) {
    await instead(globalThis, { postMessage: null }, async () => {
      const worker = await far(source);
      const file = bytes(box(LETTERS));
      const slow = await worker.load(file, ANY, { grid: 60 });
      const fast = await worker.load(file, ANY, { grid: 10 });
      assert.deepEqual(await waits(() => slow.release(["a"])), [60 - 14]); // one call for the draw, one for the id
      assert.deepEqual(await waits(() => fast.release(["a"])), [20 - 14]);
    });
  },
};

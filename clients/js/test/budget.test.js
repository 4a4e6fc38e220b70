/** The budget in a file: one charge, one answer, whatever happens in between. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { openBudget } from "../src/budget_node.js";
import { openWith } from "../src/budget.js";
import { load } from "../src/core.js";
import { HOME, folder, readVectors } from "./support/files.js";

const file = readVectors().draws_box.files.find((one) => one.name === "box, epsilon 1" || one.text.includes('"epsilon": "1/1"'));
const POLICY = { maxEpsilon: 30, maxCategories: 1000, digest: "any" };
const mechanism = await load(new TextEncoder().encode(file.text), POLICY);
const [a, b] = mechanism.categories;
const place = () => join(folder(), "budget.json");
const stored = (path) => JSON.parse(readFileSync(path, "utf8"));

/** A store in memory that stops working after so many updates, as if the device lost power. */
function fragile(updates) {
  const store = { state: null, left: updates };
  store.update = async (change) => {
    const copy = structuredClone(store.state);
    if (store.left-- <= 0) throw new Error("no power");
    store.state = change(copy);
  };
  return store;
}

test("50 asks at once: one answer, one charge", async () => {
  const path = place();
  const budget = await openBudget({ path, limit: 3 });
  assert.equal(budget.fresh, true);
  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => budget.release(mechanism, "2026-11", [i % 2 ? a : b])));
  assert.equal(new Set(found.map((one) => JSON.stringify(one))).size, 1);
  assert.equal(stored(path).spent, 1000000);
  assert.equal(await budget.left(), 2);
  const again = await openBudget({ path, limit: 3 });
  assert.equal(again.fresh, false);
  assert.deepEqual(await again.release(mechanism, "2026-11", [b]), found[0]);
});

test("processes at once: one answer, one charge", async () => {
  const path = place();
  const script = `
    import { openBudget } from ${JSON.stringify(new URL("src/budget_node.js", HOME).href)};
    import { load } from ${JSON.stringify(new URL("src/core.js", HOME).href)};
    const mechanism = await load(new TextEncoder().encode(${JSON.stringify(file.text)}), ${JSON.stringify(POLICY)});
    const budget = await openBudget({ path: ${JSON.stringify(path)}, limit: 3 });
    console.log(JSON.stringify(await budget.release(mechanism, "e", [mechanism.categories[0]])));`;
  const run = promisify(execFile);
  const found = await Promise.all(Array.from({ length: 6 }, () => run(process.execPath, ["--input-type=module", "-e", script])));
  assert.equal(new Set(found.map((one) => one.stdout)).size, 1);
  assert.equal(stored(path).spent, 1000000);
});

test("overspending is refused and nothing is charged; nor for a user that is refused", async () => {
  const path = place();
  const budget = await openBudget({ path, limit: "3/2" });
  await assert.rejects(budget.release(mechanism, "1", ["nowhere"], { unknown: "error" }), { reason: "user" });
  await assert.rejects(budget.release(mechanism, "", [a]), { reason: "budget" });
  assert.equal(stored(path).spent, 0);
  const first = await budget.release(mechanism, "1", [a]);
  const before = readFileSync(path, "utf8");
  await assert.rejects(budget.release(mechanism, "2", [a]), { reason: "budget" });
  assert.equal(readFileSync(path, "utf8"), before);
  assert.deepEqual(await budget.releaseCounts(mechanism, "1", new Map([[b, 5]])), first);
});

test("ε is rounded up, the limit down", async () => {
  const store = fragile(99);
  const third = { ...mechanism, epsilon: "1/3" };
  const budget = await openWith(store, { limit: 1 });
  for (const epoch of ["1", "2"]) await budget.release(third, epoch, [a]);
  assert.equal(store.state.spent, 666668);
  await assert.rejects(budget.release(third, "3", [a]), { reason: "budget" });
});

test("the charge is stored before the draw, and an answer before it is returned", async () => {
  const store = fragile(99);
  const budget = await openWith(store, { limit: 3 });
  let seen;
  const spy = { ...mechanism, release: (records) => ((seen = structuredClone(store.state)), mechanism.release(records)) };
  const found = await budget.release(spy, "e", [a]);
  assert.deepEqual([seen.spent, seen.answers[0][2]], [1000000, null]);
  assert.deepEqual(store.state.answers[0][2], { ...found });
});

for (const updates of [1, 2])
  test(`no power after ${updates} updates: nothing is returned, and later one answer for at most one charge`, async () => {
    const store = fragile(updates);
    const budget = await openWith(store, { limit: 1 });
    await assert.rejects(budget.release(mechanism, "e", [a]), /no power/);
    store.left = 99;
    const found = await (await openWith(store, { limit: 1 })).release(mechanism, "e", [a]);
    assert.equal(store.state.spent, 1000000);
    assert.deepEqual(await budget.release(mechanism, "e", [b]), found);
  });

const EMPTY = '{"version":2,"limit":3000000,"spent":0,"answers":[],"streams":[]}';

test("damage, another limit and a lost file are said, never taken for an empty budget", async () => {
  for (const text of ["", "null", "{", "{}", EMPTY.replace('"spent":0', '"spent":-1'), EMPTY.replace("2", "1")]) {
    const path = place();
    writeFileSync(path, text);
    await assert.rejects(openBudget({ path, limit: 3 }), { reason: "budget" }, text);
    assert.equal(readFileSync(path, "utf8"), text);
  }
  const path = place();
  await assert.rejects(openBudget({ path, limit: 3, begin: false }), { reason: "budget" });
  await openBudget({ path, limit: 3 });
  assert.equal(JSON.stringify(stored(path)), EMPTY);
  await assert.rejects(openBudget({ path, limit: 4 }), { reason: "budget" });
  await openBudget({ path, limit: 3, begin: false });
});

test("a stored answer that is damaged is refused, never shown and never drawn again", async () => {
  const path = place();
  const right = await (await openBudget({ path, limit: 3 })).release(mechanism, "e", [a]);
  const whole = stored(path);
  const { category, ...lacking } = right;
  const damaged = [{}, [], "x", 5, 0, false, "", lacking, { ...right, id: "0" }, { ...right, category: null }, { ...right, category: "nowhere" },
    { ...right, mechanism: "ab".repeat(32) }, { ...right, group: "north" }, { ...right, group: 5 }, { ...right, more: 1 }];
  for (const answer of damaged) {
    const text = JSON.stringify({ ...whole, answers: [[whole.answers[0][0], "e", answer, 1000000]] });
    writeFileSync(path, text);
    const released = async () => (await openBudget({ path, limit: 3 })).release(mechanism, "e", [a]);
    await assert.rejects(released, { reason: "budget" }, JSON.stringify(answer));
    assert.equal(readFileSync(path, "utf8"), text);
  }
  for (const entry of [[5, "e", right], [whole.answers[0][0], 5, right], [whole.answers[0][0], "", right]]) {
    writeFileSync(path, JSON.stringify({ ...whole, answers: [[...entry, 1000000]] }));
    await assert.rejects(openBudget({ path, limit: 3 }), { reason: "budget" });
  }
  writeFileSync(path, JSON.stringify(whole));
  assert.deepEqual(await (await openBudget({ path, limit: 3 })).release(mechanism, "e", [b]), right);
});

test("a stored sum that is less than its answers cost is refused, and stays as it is", async () => {
  const path = place();
  await (await openBudget({ path, limit: 3 })).release(mechanism, "e", [a]);
  for (const spent of [0, 999999, 1000001, 3000000]) {
    const text = JSON.stringify({ ...stored(path), spent });
    writeFileSync(path, text);
    await assert.rejects(openBudget({ path, limit: 3 }), { reason: "budget" }, String(spent));
    assert.equal(readFileSync(path, "utf8"), text);
  }
});

test("the lock of a process that was killed is removed", async () => {
  const path = place();
  const script = `
    import { openBudget } from ${JSON.stringify(new URL("src/budget_node.js", HOME).href)};
    JSON.stringify = new Proxy(JSON.stringify, { apply(write, self, [value]) {
      if (value.version) process.kill(process.pid, "SIGKILL"); // while it holds the lock
      return write(value);
    } });
    await openBudget({ path: ${JSON.stringify(path)}, limit: 3 });`;
  await assert.rejects(promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]), { signal: "SIGKILL" });
  assert.ok(existsSync(path + ".lock"));
  if (!existsSync("/proc/self/ns/pid")) return; // elsewhere such a lock has to be deleted by hand
  assert.equal((await openBudget({ path, limit: 3 })).fresh, true);
});

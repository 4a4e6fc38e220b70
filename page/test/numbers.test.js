/** Sums, powers of e, random words, and what is refused. */
import assert from "node:assert/strict";
import test from "node:test";
import { choose } from "../src/choose.js";
import { TV, alpha, between, distanceOf, hockeyStick, wasserstein, worstCase, line } from "../src/distances.js";
import { exactMean, fitted } from "../src/fitted.js";
import { SAMPLERS, keepsPrior, samplerOf } from "../src/floors.js";
import { randomWords, sortedWords } from "../src/invented.js";
import { lawOf, userOf } from "../src/laws.js";
import { exactExp, exactSum, priorOf, sum } from "../src/numbers.js";

const Q = priorOf([5, 3, 1, 1]);

test("sums are rounded once", () => {
  assert.equal(exactSum([]), 0);
  assert.equal(exactSum(Array(10).fill(0.1)), 1);
  assert.equal(exactSum([1e308, 1, -1e308]), 1);
  assert.equal(exactSum([1, 2 ** -53, 2 ** -106]), 1 + 2 ** -52); // half way, and a little more
  assert.equal(exactMean(Float64Array.of(2 ** 45 + 1, 2 ** 45)), 2 ** 45 + 0.5);
  assert.equal(exactMean(new Float64Array(1200).fill(2 ** 45 - 1)), 2 ** 45 - 1);
});

test("e^x is the nearest double", () => {
  assert.equal(exactExp(0), 1);
  assert.equal(exactExp(1), Math.E);
  assert.equal(exactExp(100), 2.6881171418161356e43);
  assert.equal(exactExp(-100), 3.720075976020836e-44);
  assert.equal(exactExp(1e-300), 1);
});

test("random words are SplitMix64's", () => {
  const { high, low } = randomWords(0, 3);
  const words = Array.from(high, (one, i) => (BigInt(one) << 32n) | BigInt(low[i]));
  assert.deepEqual(words, [0xe220a8397b1dcdafn, 0x6e789e6aa1b965f4n, 0x06c45d188009454fn]);
});

test("words are sorted by both halves, and equal ones stay", () => {
  const high = Uint32Array.of(7, 2 ** 31, 7, 7, 0, 7);
  const low = Uint32Array.of(9, 0, 2 ** 31, 1, 5, 9);
  assert.deepEqual([...sortedWords({ high, low })], [4, 3, 0, 5, 2, 1]);
});

test("a sparse user is a dense one, and counts are shares", () => {
  const sparse = userOf([[2, 1], [0, 3]], 4);
  assert.deepEqual(sparse, userOf([0.75, 0, 0.25, 0], 4));
  assert.deepEqual([...sparse.mine], [0, 2]);
});

test("laws of many categories lie in their boxes", () => {
  const q = priorOf(Array.from({ length: 6000 }, (_, i) => 1 / (i + 1)));
  const users = [[[5999, 1]], [[0, 1]], [[1, 2], [4000, 1]], [...q]].map((one) => userOf(one, q.length));
  for (const name of SAMPLERS) {
    const sampler = samplerOf(name, q, 2);
    for (const user of users) {
      const law = lawOf(sampler, user);
      assert.ok(Math.abs(sum(law) - 1) < 1e-12, name);
      const inside = (x, i) => x >= sampler.floor[i] * (1 - 1e-12) && x <= sampler.a * sampler.floor[i] * (1 + 1e-12);
      assert.ok(law.every(inside), name);
      assert.ok(Math.abs(distanceOf(sampler, user, TV) - between(TV, user.p, law)) < 1e-12, name);
      assert.ok(distanceOf(sampler, user, TV) <= worstCase(sampler, TV) + 1e-12, name);
    }
  }
});

test("a choice keeps the prior, and one record needs a kernel", () => {
  const { best, runnerUp, rows } = choose(Q, 2);
  assert.ok(rows.length > 5 && rows.every((row) => keepsPrior(row.sampler)));
  assert.ok(best.mean + 0.3 * best.maximum <= runnerUp.mean + 0.3 * runnerUp.maximum + 1e-9);
  assert.equal(choose(Q, 2, { oneRecord: true }).best.name, "minimax_kernel");
});

test("what is out of range is refused", () => {
  for (const wrong of [
    () => samplerOf("nobody", Q, 1),
    () => samplerOf("toString", Q, 1),
    () => samplerOf("blend", Q, 0),
    () => samplerOf("blend", Q, 101),
    () => samplerOf("blend", Q, NaN),
    () => samplerOf("blend", Q, 1, { weight: 1.5 }),
    () => samplerOf("power_caps", Q, 1, { scale: 1e9 }),
    () => samplerOf("power_caps", Q, 1, { exponent: -1 }),
    () => samplerOf("power_caps", Q, 1, { promise: 1 }),
    () => samplerOf("local_minimax", Q, 1, { gamma: 0.5 }),
    () => samplerOf("nearest", Q, 1),
    () => samplerOf("nearest", Q, 1, { geometry: line([1, 2, 3, 4]), share: 1 }),
    () => fitted(Q, 1, { tail: -1 }),
    () => fitted(Q, 0),
    () => hockeyStick(0.5),
    () => alpha(0.01),
    () => alpha(41),
    () => priorOf([]),
    () => priorOf([1, 0]),
    () => priorOf([1, 1e-120]),
    () => priorOf([1e308, 1e308]),
    () => userOf([], 4),
    () => userOf([0, 0, 0, 0], 4),
    () => userOf([1, 0, 0], 4),
    () => userOf([2, -1, 0, 0], 4),
    () => userOf([1, NaN, 0, 0], 4),
    () => userOf([[4, 1]], 4),
  ])
    assert.throws(wrong, RangeError, String(wrong));
});

test("a worst case that is not known is null", () => {
  const distance = wasserstein(line([1, 2, 3, 4]));
  assert.equal(worstCase(samplerOf("blend", Q, 1), distance), null);
  assert.equal(worstCase(samplerOf("nearest", Q, 1, distance), TV), null);
});

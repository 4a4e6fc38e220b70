/**
 * Sums, powers of e and orders, as the library computes them.
 *
 * Many boxes are tight: floors and caps add up to 1 exactly, and a rounding decides which side of it they are on. So sums
 * are added up in numpy's order, and e^ε is rounded correctly.
 */

export const EPSILON = Number.EPSILON;
const BITS = 320n;

/** Σ of `count` values from `begin` on, in numpy's order: eight sums side by side, halves of what is long. */
export function sum(values, begin = 0, count = values.length - begin) {
  if (count < 8) {
    let total = 0;
    for (let i = begin; i < begin + count; i++) total += values[i];
    return total;
  }
  if (count > 128) {
    const half = (count >> 1) - ((count >> 1) % 8);
    return sum(values, begin, half) + sum(values, begin + half, count - half);
  }
  const parts = Array.from({ length: 8 }, (_, j) => values[begin + j]);
  const whole = count - (count % 8);
  for (let i = 8; i < whole; i++) parts[i % 8] += values[begin + i];
  const [a, b, c, d, e, f, g, h] = parts;
  let total = a + b + (c + d) + (e + f + (g + h));
  for (let i = begin + whole; i < begin + count; i++) total += values[i];
  return total;
}

/** Σ rounded once, whatever the order of the terms: Shewchuk's partial sums, as in Python's math.fsum. */
export function exactSum(values) {
  const parts = [];
  for (let x of values) {
    let kept = 0;
    for (let i = 0; i < parts.length; i++) {
      let y = parts[i];
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low) parts[kept++] = low;
      x = high;
    }
    parts.length = kept;
    parts.push(x);
  }
  let high = parts.pop() ?? 0;
  let low = 0;
  while (parts.length && !low) {
    const x = high;
    const y = parts.pop();
    high = x + y;
    low = y - (high - x);
  }
  // Half way between two doubles the next part decides.
  if (parts.length && low * parts.at(-1) > 0) {
    const beyond = high + 2 * low;
    if (2 * low === beyond - high) high = beyond;
  }
  return high;
}

/** e^x as the nearest double, for |x| ≤ 100: a series of integers. */
export function exactExp(x) {
  const scaled = BigInt(Math.floor(Math.abs(x) * 2 ** 600)) >> (600n - BITS);
  let term = 1n << BITS;
  let total = term;
  for (let j = 1n; term; j++) {
    term = (term * scaled) / (j << BITS);
    total += term;
  }
  if (x < 0) total = (1n << (2n * BITS)) / total;
  return Number(total) * 2 ** -Number(BITS);
}

/** Σ_{j≤i}; what is long in blocks, so that the error grows more slowly. */
export function running(values) {
  const n = values.length;
  const out = new Float64Array(n);
  const block = n > 4096 ? 1024 : n;
  for (let begin = 0, before = 0; begin < n; begin += block) {
    let here = 0;
    for (let i = begin; i < Math.min(begin + block, n); i++) out[i] = before + (here += values[i]);
    before += here;
  }
  return out;
}

/** Σ_{j<i}. */
export function sumBefore(values) {
  const out = new Float64Array(values.length);
  out.set(running(values.subarray(0, -1)), 1);
  return out;
}

/** Σ_{j≥i}, added up from the far end so that it never cancels. */
export const sumFrom = (values) => running(values.toReversed()).reverse();

/** Σ_{j>i}. */
export function sumAfter(values) {
  const out = new Float64Array(values.length);
  out.set(sumFrom(values.subarray(1)));
  return out;
}

/** Positions from the smallest value to the largest; equal ones stay in their order. */
export const ascending = (values) =>
  Uint32Array.from(values.keys()).sort((i, j) => values[i] - values[j] || i - j);

/** Positions from the largest value to the smallest; equal ones stay in their order. */
export const descending = (values) =>
  Uint32Array.from(values.keys()).sort((i, j) => values[j] - values[i] || i - j);

/** The values in an order. */
export const pick = (values, order) => Float64Array.from(order, (i) => values[i]);

/** Two lists in one. */
export function joined(first, second) {
  const out = new Float64Array(first.length + second.length);
  out.set(first);
  out.set(second, first.length);
  return out;
}

/** How many of the sorted values are below x. */
export const countBelow = (sorted, x) => firstWhere(sorted.length, (i) => sorted[i] >= x);

/** How many of the sorted values are at most x. */
export const countUpTo = (sorted, x) => firstWhere(sorted.length, (i) => sorted[i] > x);

/** The first of 0 … count − 1 for which something holds that holds from then on, or `count`. */
export function firstWhere(count, holds) {
  let [first, last] = [0, count];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (holds(middle)) last = middle;
    else first = middle + 1;
  }
  return first;
}

export const smallest = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
export const largest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** The first position of the smallest value. */
export const whereSmallest = (values) => values.indexOf(smallest(values));

/** Σ of all values but one, which would be lost in a difference from the sum of all. */
export const sumOfOthers = (values, i) => sum(values, 0, i) + sum(values, i + 1);

/** Refuse unless a number is as the condition says. */
export function need(condition, message) {
  if (!condition) throw new RangeError(message);
}

/** A prior from positive weights, bit for bit as the library divides them. */
export function priorOf(weights) {
  const given = Float64Array.from(weights);
  need(given.length && given.every((one) => one > 0 && one < Infinity), "a prior needs positive numbers");
  const total = exactSum(given);
  need(total < Infinity, "the numbers of a prior must have a finite sum");
  const shares = given.map((one) => one / total);
  const again = exactSum(shares);
  const q = shares.map((one) => one / again);
  need(smallest(q) >= 1e-100, "the probabilities of a prior must be at least 1e-100");
  return q;
}

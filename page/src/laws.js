/** The law that is released for a user: the best point of the box above a floor, pK, or the nearest point of the box. */
import { nearestLaw } from "../../clients/js/src/nearest.js";
import { EPSILON, clamp, firstWhere, joined, need, sum } from "./numbers.js";

/** Smaller probabilities of a user are none. */
const NEGLIGIBLE = 1e-250;

/** A user from one number per category, or from [category, number] pairs: probabilities, and the categories that are had. */
export function userOf(given, n) {
  const p = new Float64Array(n);
  if (Array.isArray(given[0]))
    for (const [i, value] of given) {
      need(i in p, "a user has a category that the prior does not have");
      p[i] += value;
    }
  else {
    need(given.length === n, "a user needs one number per category");
    p.set(given);
  }
  need(p.every((one) => one >= 0 && one < Infinity), "a user needs numbers that are not negative");
  const mine = Uint32Array.from(p.keys()).filter((i) => p[i] >= NEGLIGIBLE);
  const total = mine.reduce((before, i) => before + p[i], 0);
  need(total > 0, "a user must not be empty");
  return sparseUser(mine, Float64Array.from(mine, (i) => p[i] / total), n);
}

/** A user from the categories that are had, in ascending order, and their probabilities; `p` is written out on demand. */
export function sparseUser(mine, own, n) {
  let p;
  return {
    mine,
    own,
    get p() {
      if (!p) {
        p = new Float64Array(n);
        mine.forEach((i, j) => (p[i] = own[j]));
      }
      return p;
    },
  };
}

/** The u with Σ clip(u·p; low, a·low) = target, ∞ where even the caps fall short: a search among the sorted knots. */
export function multiplier(p, low, a, target) {
  // A few ulps short is a rounding of floor or cap, not mass to be found.
  const reached = target * (1 - 4 * EPSILON);
  const high = low.map((one) => a * one);
  if (sum(high) < reached) return Infinity;
  const ratio = low.map((one, i) => one / p[i]);
  const knots = joined(ratio, ratio.map((one) => a * one)).sort();
  const at = (u) => sum(p.map((one, i) => clamp(u * one, low[i], high[i])));
  const first = firstWhere(knots.length - 1, (i) => at(knots[i]) >= reached);
  const right = knots[first];
  const left = first > 0 ? knots[first - 1] : 0;
  const capped = ratio.map((one) => Number(a * one <= left));
  const floored = ratio.map((one) => Number(one >= right));
  const fixed = sum(high.map((one, i) => one * capped[i])) + sum(low.map((one, i) => one * floored[i]));
  const slope = sum(p.map((one, i) => (capped[i] || floored[i] ? 0 : one)));
  return slope > 0 ? clamp((target - fixed) / slope, left, right) : right;
}

/** clip(u·p; low, a·low), with ∞·p = ∞. */
const clipped = (p, low, a, u) =>
  p.map((one, i) => (u === Infinity ? a * low[i] : clamp(u * one, low[i], a * low[i])));

/** The clip on the categories that a user has, and whether everything there is at its cap. */
function clipOnSupport({ floor, a, total }, { own, mine }) {
  const low = Float64Array.from(mine, (i) => floor[i]);
  const u = multiplier(own, low, a, 1 - (total - sum(low)));
  return { x: clipped(own, low, a, u), capped: u === Infinity };
}

/** The clip; what capped users leave goes to the categories that they lack, by their rooms below the public law. */
function clipLaw(sampler, user) {
  const { q, floor, a } = sampler;
  const { x, capped } = clipOnSupport(sampler, user);
  const law = floor.slice();
  user.mine.forEach((i, j) => (law[i] = x[j]));
  if (!capped) return law;
  const open = clipped(q, floor, a, multiplier(q, floor, a, 1));
  const rooms = open.map((one, i) => (user.p[i] > 0 ? 0 : one - floor[i]));
  const all = sum(rooms);
  const part = all > 0 ? Math.min(Math.max(1 - sum(law), 0) / all, 1) : 0;
  return law.map((one, i) => one + rooms[i] * part);
}

/** The x of the box with the smallest W1, found in integers. */
function nearestOf(sampler, { p }) {
  const { low, high } = sampler.box;
  let sofar = 0;
  const sums = p.map((one) => (sofar += one));
  const ends = Array.from(sums, (one) => BigInt(Math.floor((one / sofar) * 2 ** 52)) << 10n);
  const targets = ends.map((end, i) => end - (i ? ends[i - 1] : 0n));
  return Float64Array.from(nearestLaw(targets, low, high, sampler.geometry), (one) => Number(one) / 2 ** 62);
}

/** The released law of a user that `userOf` made. */
export function lawOf(sampler, user) {
  if (sampler.rule === "kernel") return sampler.kernel.apply(user.p);
  return sampler.rule === "clip" ? clipLaw(sampler, user) : nearestOf(sampler, user);
}

/** The released law on the user's own categories, in the order of `mine`. */
export function lawOnSupport(sampler, user) {
  if (sampler.rule === "clip") return clipOnSupport(sampler, user).x;
  if (sampler.rule === "kernel") return sampler.kernel.applyOn(user);
  const law = lawOf(sampler, user);
  return Float64Array.from(user.mine, (i) => law[i]);
}

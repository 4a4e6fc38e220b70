import { N, sum } from "./numbers.js";
import { need } from "./refuse.js";

/**
 * Integers clamp(m·c, low, high) with m such that they add up to the target: rounded down, and the missing units go to
 * the first that are no integers.
 */
export function clip(c, low, high, target) {
  const weights = Array(c.length);
  let free = [...c.keys()];
  for (;;) {
    const sigma = sum(free.map((j) => c[j]));
    const floored = [];
    const capped = [];
    let excess = 0n;
    for (const j of free) {
      const share = target * c[j];
      const below = low[j] * sigma - share;
      const above = share - high[j] * sigma;
      if (below >= 0n) {
        floored.push(j);
        excess += below;
      } else if (above >= 0n) {
        capped.push(j);
        excess -= above;
      }
    }
    const fix = (list, bound) => {
      for (const j of list) target -= weights[j] = bound[j];
    };
    if (excess >= 0n) fix(floored, low);
    if (excess <= 0n) fix(capped, high);
    free = free.filter((j) => weights[j] === undefined);
    if (!excess || !free.length) break;
  }
  const sigma = sum(free.map((j) => c[j]));
  const broken = free.filter((j) => (target * c[j]) % sigma);
  for (const j of free) weights[j] = (target * c[j]) / sigma;
  const missing = target - sum(free.map((j) => weights[j]));
  for (const j of broken.slice(0, Number(missing))) weights[j]++;
  return weights;
}

/** The law of the public, a user whose counts are the prior. */
export const publicLaw = ({ prior, low, high, keeps }) => (keeps ? prior : clip(prior, low, high, N));

/** The smallest i in from … to − 1 for which `beyond(i)` holds, or `to`. */
export function first(from, to, beyond) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (beyond(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Sums before each index: one more than there are values. */
export const running = (list) => {
  let total = 0n;
  return [0n, ...list.map((one) => (total += one))];
};

/** The index of the interval that holds a number, `ends` being running sums. */
export const within = (ends, number) => first(0, ends.length - 2, (i) => number < ends[i + 1]);

/** The same where the positions `mine` have other weights than those behind the running sums. */
function walk(ends, mine, weights, number) {
  let shift = 0n;
  for (const [j, i] of mine.entries()) {
    const start = ends[i] + shift;
    if (number < start) break;
    if (number < start + weights[j]) return i;
    shift += weights[j] - (ends[i + 1] - ends[i]);
  }
  return within(ends, number - shift);
}

/** What a release needs and no user changes: sums of the floors, of the public law, and of what it has above them. */
export function prepareBox(box) {
  const lows = running(box.low);
  const ends = running(publicLaw(box));
  return { lows, ends, above: ends.map((end, i) => end - lows[i]) };
}

/** The integer weights of the user's positions, and how many of the N units are left: none unless they are all caps. */
export function solve(box, { mine, counts }) {
  const low = mine.map((i) => box.low[i]);
  const high = mine.map((i) => box.high[i]);
  const target = N - box.ready.lows[box.n] + sum(low);
  const left = target - sum(high);
  return left > 0n ? { own: high, left } : { own: clip(counts, low, high, target), left: 0n };
}

/** The position of a word, without computing the weights of the others. */
export function drawBox(box, user, [word]) {
  const { mine } = user;
  const { lows, ends, above } = box.ready;
  if (!mine.length) return within(ends, word);
  const { own, left } = solve(box, user);
  const number = word - (N - left);
  if (number < 0n) return walk(lows, mine, own, word);
  const room = above[box.n] - sum(mine.map((i) => above[i + 1] - above[i]));
  need(left <= room, "certificate", "a law left its box");
  return walk(above, mine, mine.map(() => 0n), (number * room) / left);
}

/** Which sampler to take at an ε: every one is measured on invented users, others than those `fitted` looks at. */
import { TV, distanceOf, wasserstein, worstCase } from "./distances.js";
import { crowdOf, fitted } from "./fitted.js";
import { SAMPLERS, keepsPrior, samplerOf } from "./floors.js";
import { UNITS } from "./invented.js";
import { sparseUser } from "./laws.js";
import { descending, pick, sum } from "./numbers.js";

const FREE = ["global_minimax", "randomized_response", "rr_with_prior"];
const SHARES = [0.4, 0.5, 0.6];
/** The weight of the worst-served user against the mean. */
const TAIL = 0.3;

let last;

/** The users that samplers are measured on; those of the last prior are kept, for they do not depend on ε. */
export function people(q) {
  if (last?.q.length === q.length && last.q.every((one, i) => one === q[i])) return last.users;
  const order = descending(q);
  const { starts, columns, units } = crowdOf(pick(q, order), 1);
  const users = Array.from({ length: starts.length - 1 }, (_, user) => {
    const [begin, end] = [starts[user], starts[user + 1]];
    const own = new Map();
    for (let k = begin; k < end; k++) own.set(order[columns[k]], units[k] / UNITS);
    const mine = Uint32Array.from(own.keys()).sort();
    return sparseUser(mine, Float64Array.from(mine, (i) => own.get(i)), q.length);
  });
  last = { q: Float64Array.from(q), users };
  return users;
}

/** A quantile of sorted numbers, interpolated; with infinite ones among them the next larger number. */
function quantile(sorted, share) {
  const place = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return sorted.at(-1) === Infinity ? above : below + (above - below) * (place - Math.floor(place));
}

/** Mean, median, percentiles and maximum of one number per user. */
export function summarise(values) {
  const sorted = Float64Array.from(values).sort();
  const [median, p90, p99] = [0.5, 0.9, 0.99].map((share) => quantile(sorted, share));
  return { mean: sum(values) / values.length, median, p90, p99, maximum: sorted.at(-1) };
}

/** The numbers of one sampler. */
function measured(sampler, users, distance) {
  const values = Float64Array.from(users, (user) => distanceOf(sampler, user, distance));
  const { name, options } = sampler;
  const worst = worstCase(sampler, distance);
  return { name, options, sampler, ...summarise(values), worstCase: worst, keepsPrior: keepsPrior(sampler) };
}

/** Nine digits: numbers that agree in them are equal. */
const rounded = (x) => Number(x.toFixed(9));

/** What decides, the most important first; smaller is better, and of equals the one that keeps the prior. */
function rankOf(row, sameForEverybody, tail) {
  const first = sameForEverybody ? [row.worstCase === null ? Infinity : rounded(row.worstCase)] : [];
  const weighed = row.mean + (tail ? tail * row.maximum : 0);
  return [...first, rounded(weighed), Number(!row.keepsPrior)];
}

/** Negative where the first list is before the second. */
function compareLists(a, b) {
  const k = a.findIndex((one, i) => one !== b[i]);
  return k < 0 ? 0 : a[k] < b[k] ? -1 : 1;
}

/** The best sampler, the second best (or null), all rows in the order of the catalogue, and those that will do, the best first. */
export function choose(q, epsilon, options = {}) {
  const { tail = TAIL, keepPrior = true, oneRecord = false, sameForEverybody = false, geometry } = options;
  const own = Float64Array.from(q);
  const distance = geometry ? wasserstein(geometry) : TV;
  const users = people(own);
  const near = geometry ? SHARES.map((share) => samplerOf("nearest", own, epsilon, { share, geometry })) : [];
  const promising = sameForEverybody && !geometry ? [fitted(own, epsilon, { promise: "best" })] : [];
  const names = SAMPLERS.filter((name) => !(keepPrior && FREE.includes(name)));
  const made = [...near, fitted(own, epsilon), ...promising, ...names.map((name) => samplerOf(name, own, epsilon))];
  const considered = made.filter((one) => !keepPrior || keepsPrior(one));
  const rows = considered.map((one) => measured(one, users, distance));
  const ranked = rows
    .filter((row) => !oneRecord || row.sampler.rule === "kernel")
    .map((row) => ({ row, rank: rankOf(row, sameForEverybody, tail) }))
    .sort((a, b) => compareLists(a.rank, b.rank))
    .map(({ row }) => row);
  return { best: ranked[0], runnerUp: ranked[1] ?? null, rows, ranked };
}

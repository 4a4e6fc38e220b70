/** The kernels of the linear samplers, never written out: a row, the diagonal, or pK for one user. */
import { ascending, descending, exactExp, largest, pick, running, sum, sumAfter, sumBefore, sumFrom } from "./numbers.js";

/** The paper's kernel in closed form: K_ij = c_j for q_j below q_i, a·c_i for j = i, (c_i/q_i)·q_j for q_j above. */
export function minimaxKernel(q, epsilon) {
  const a = exactExp(epsilon);
  const more = Math.expm1(epsilon);
  const order = ascending(q);
  const sorted = pick(q, order);
  const rest = sumFrom(sorted);
  const share = sorted.map((one, i) => one / (one * more + rest[i]));
  const logs = sumBefore(share.map((one) => Math.log1p(-one)));
  const slope = share.map((one, i) => (one * Math.exp(logs[i])) / sorted[i]); // c/q, which falls with the rank
  for (let i = 1; i < slope.length; i++) slope[i] = Math.min(slope[i], slope[i - 1]);
  const c = slope.map((one, i) => one * sorted[i]);

  const unsort = (values) => {
    const out = new Float64Array(values.length);
    order.forEach((i, rank) => (out[i] = values[rank]));
    return out;
  };
  const apply = (p) => {
    const own = pick(p, order);
    const after = sumAfter(own);
    const before = sumBefore(own.map((one, i) => one * (c[i] / sorted[i])));
    return unsort(own.map((one, i) => c[i] * (after[i] + a * one) + sorted[i] * before[i]));
  };
  const rankOf = new Uint32Array(q.length);
  order.forEach((i, rank) => (rankOf[i] = rank));
  const applyOn = ({ mine, own }) => {
    const ranks = pick(rankOf, mine);
    const byRank = ascending(ranks);
    const p = pick(own, byRank);
    const at = pick(ranks, byRank);
    const after = sumAfter(p);
    const before = sumBefore(p.map((one, k) => one * (c[at[k]] / sorted[at[k]])));
    const out = new Float64Array(p.length);
    byRank.forEach((j, k) => (out[j] = c[at[k]] * (after[k] + a * p[k]) + sorted[at[k]] * before[k]));
    return out;
  };
  const row = (i) => {
    const rank = order.indexOf(i);
    const factor = c[rank] / sorted[rank];
    return unsort(c.map((one, j) => (j < rank ? one : j > rank ? sorted[j] * factor : Math.min(a * one, 1))));
  };
  return {
    floor: unsort(c),
    diagonal: unsort(c.map((one) => Math.min(a * one, 1))),
    leastKept: [Math.min(a * c[0], 1), (c[0] / sorted[0]) * sum(sorted, 1)],
    apply,
    applyOn,
    row,
  };
}

/** Randomized response that only ever releases the categories that are kept. */
export function responseKernel(kept, epsilon) {
  const a = exactExp(epsilon);
  const more = Math.expm1(epsilon);
  const k = kept.filter(Boolean).length;
  const other = 1 / (more + k);
  const apply = (p) => {
    const outside = sum(p.map((one, i) => (kept[i] ? 0 : one)));
    const common = (1 - outside) * other + outside / k;
    return p.map((one, i) => (kept[i] ? more * other * one + common : 0));
  };
  const applyOn = ({ mine, own }) => {
    const outside = sum(own.map((one, j) => (kept[mine[j]] ? 0 : one)));
    const common = (1 - outside) * other + outside / k;
    return own.map((one, j) => (kept[mine[j]] ? more * other * one + common : 0));
  };
  return {
    floor: Float64Array.from(kept, (one) => (one ? other : 0)),
    diagonal: Float64Array.from(kept, (one) => (one ? a * other : 0)),
    leastKept: k < kept.length ? [0, 1] : [a * other, (k - 1) * other],
    apply,
    applyOn,
    row: (i) => apply(Float64Array.from(kept, (_, j) => Number(i === j))),
  };
}

/** Which categories randomized response with a prior keeps: the k most likely, k releasing the truth most often. */
export function mostLikely(q, epsilon) {
  const order = descending(q);
  const sorted = pick(q, order);
  const sums = running(sorted);
  // Only ends of ties are considered: a best k never needs to cut through one.
  const ends = [...sorted.keys()].filter((i) => i === q.length - 1 || sorted[i + 1] < sorted[i]);
  const truth = ends.map((end) => sums[end] / (Math.expm1(epsilon) + end + 1));
  const enough = largest(truth) * (1 - 1e-13);
  const best = ends[truth.findLastIndex((one) => one >= enough)];
  const kept = Array(q.length).fill(false);
  for (const i of order.subarray(0, best + 1)) kept[i] = true;
  return kept;
}

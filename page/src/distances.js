/** How far a released law is from the user's own: f-divergences, W1 on a geometry, and the worst of all users. */
import { lawOf, lawOnSupport, userOf } from "./laws.js";
import { exactExp, largest, need, smallest, sum, sumOfOthers, whereSmallest } from "./numbers.js";

/** The smallest normal double: mass that is there although it is lost in a difference. */
const TINY = 2 ** -1022;

/** An f-divergence Σ x·f(p/x): f on t > 0, f(0), and the limit of f(t)/t. */
const divergence = (name, f, atZero, atInfinity) => ({ name, f, atZero, atInfinity });

const jensenShannon = (t) => {
  const middle = (t + 1) / 2;
  return (t * Math.log(t / middle) - Math.log(middle)) / 2;
};

export const TV = divergence("tv", (t) => Math.abs(t - 1) / 2, 0.5, 0.5);
export const KL = divergence("kl", (t) => t * Math.log(t) - t + 1, 1, Infinity);
export const CHI2 = divergence("chi2", (t) => (t - 1) ** 2, 1, Infinity);
export const HELLINGER2 = divergence("hellinger2", (t) => (Math.sqrt(t) - 1) ** 2, 1, 1);
export const JS = divergence("js", jensenShannon, Math.LN2 / 2, Math.LN2 / 2);
export const REVERSE_KL = divergence("reverse_kl", (t) => t - 1 - Math.log(t), Infinity, 1);

/** The divergences without a parameter, by name. */
export const DIVERGENCES = Object.fromEntries([TV, KL, CHI2, HELLINGER2, JS, REVERSE_KL].map((one) => [one.name, one]));

/** Σ (p − γx)₊ with γ ≥ 1. */
export function hockeyStick(gamma) {
  need(gamma >= 1, "gamma must be at least 1");
  return divergence(`hockey_stick(${gamma})`, (t) => Math.max(t - gamma, 0), 0, 1);
}

/** The power divergence of an order: KL at 1, reverse KL at 0, half of χ² at 2. */
export function alpha(order) {
  if (order === 1) return KL;
  if (order === 0) return REVERSE_KL;
  const near = Math.min(Math.abs(order), Math.abs(order - 1));
  need(near >= 0.05 * (1 - 1e-9) && Math.abs(order) <= 40, "order must be 0, 1 or 0.05 away from both, and at most 40");
  const f = (t) => (t ** order - 1 - order * (t - 1)) / (order * (order - 1));
  return divergence(`alpha(${order})`, f, order > 0 ? 1 / order : Infinity, order < 1 ? 1 / (1 - order) : Infinity);
}

/** W1 as a distance: for a geometry of `parents` and `lengths`, one for every node but the root, and a `unit`. */
export const wasserstein = (geometry) => ({ name: "w1", geometry });

/** The geometry of positions on a line: lengths as integers, as fine as 2^30 allows. */
export function line(positions) {
  const n = positions.length;
  const order = [...positions.keys()].sort((i, j) => positions[i] - positions[j] || i - j);
  const parents = [...Array(n).fill(0), ...Array.from({ length: n - 1 }, (_, k) => n + 1 + k)];
  order.forEach((i, rank) => (parents[i] = n + rank));
  const first = positions[order[0]];
  const span = positions[order[n - 1]] - first;
  const digits = span > 0 ? Math.floor(Math.log2(span)) + 1 : 0;
  // A logarithm may be off by one at a power of two.
  const exponent = span > 0 ? digits + (2 ** digits <= span) - (2 ** (digits - 1) > span) : 0;
  const scale = span > 0 ? 2 ** (29 - exponent) : 1;
  const places = positions.map((one) => roundToEven((one - first) * scale));
  const units = order.slice(1).map((i, k) => places[i] - places[order[k]]);
  const common = units.reduce(greatestCommon, 0) || 1;
  return { parents, lengths: [...Array(n).fill(0), ...units.map((one) => one / common)], unit: common / scale };
}

/** The nearest integer, of two equally near ones the even one. */
function roundToEven(x) {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 ? below + 1 : below;
}

const greatestCommon = (a, b) => (b ? greatestCommon(b, a % b) : a);

/** W1(p, x): over the edges, length times the difference of the masses below. */
function moved({ parents, lengths, unit }, p, x) {
  const below = new Float64Array(parents.length + 1);
  p.forEach((one, i) => (below[i] = one - x[i]));
  parents.forEach((parent, v) => (below[parent] += below[v]));
  return sum(Float64Array.from(lengths, (length, v) => Math.abs(below[v]) * (length * unit)));
}

/** price·mass with ∞·0 = 0. */
const times = (price, mass) => (price === Infinity && mass === 0 ? 0 : price * mass);

/** D_f from x where p > 0, and the total `rest` of x elsewhere. */
function onSupport({ f, atZero, atInfinity }, p, x, rest) {
  const terms = p.map((one, i) => (x[i] > 0 ? x[i] * f(one / x[i]) : 0));
  const never = sum(p.map((one, i) => (x[i] > 0 ? 0 : one)));
  return Math.max(sum(terms) + times(atZero, rest) + times(atInfinity, never), 0);
}

/** The distance of two laws. */
export function between(distance, p, x) {
  if (distance.geometry) return moved(distance.geometry, p, x);
  const mine = [...p.keys()].filter((i) => p[i] > 0);
  const rest = sum(Float64Array.from(x, (one, i) => (p[i] > 0 ? 0 : one)));
  const [own, released] = [p, x].map((law) => Float64Array.from(mine, (i) => law[i]));
  return onSupport(distance, own, released, rest);
}

/** D_f of a point mass whose own category is released with probability `own`; `rest` is 1 − own, given apart. */
const ofPointMass = (distance, own, rest) =>
  onSupport(distance, Float64Array.of(1), Float64Array.of(Math.min(own, 1)), rest);

/** Total variation to the best point of the box: max( Σ(p − a·c)₊ , Σc − Σ_{p>0} min(c, p) ). */
export function boxVariation({ floor, a, total }, columns, p) {
  let over = 0;
  let kept = 0;
  for (let j = 0; j < columns.length; j++) {
    const c = floor[columns[j]];
    over += Math.max(p[j] - a * c, 0);
    kept += Math.min(c, p[j]);
  }
  return Math.max(over, total - kept, 0);
}

/** How far a user that `userOf` made is from the law released for them. */
export function distanceOf(sampler, user, distance) {
  if (distance.geometry || sampler.rule === "nearest") return between(distance, user.p, lawOf(sampler, user));
  const p = user.own;
  if (distance === TV && sampler.rule === "clip") return boxVariation(sampler, user.mine, p);
  const x = lawOnSupport(sampler, user);
  // Whether anything else is released is counted: 1 − Σx is blurred by rounding.
  const all = x.filter(Boolean).length === sampler.released;
  return onSupport(distance, p, x, all ? 0 : Math.max(1 - sum(x), TINY));
}

/** The largest distance of a user who has one category alone. */
function worstPoint(sampler, distance) {
  const n = sampler.q.length;
  return largest(sampler.q.map((_, i) => distanceOf(sampler, userOf([[i, 1]], n), distance)));
}

/** The largest distance of any possible user; null where it is not known. */
export function worstCase(sampler, distance) {
  const { rule, floor, a, kernel } = sampler;
  if (distance.geometry) return rule === "clip" ? null : worstPoint(sampler, distance);
  if (rule === "nearest") return null;
  if (rule === "kernel") return ofPointMass(distance, ...kernel.leastKept);
  const own = leastOwn(sampler);
  const i = whereSmallest(own);
  return ofPointMass(distance, own[i], Math.max(1 - a * floor[i], sumOfOthers(floor, i)));
}

/** min(a·c_i, 1 − Σc + c_i): what a point mass on i keeps of itself. */
const leastOwn = ({ floor, a, total }) => floor.map((one) => Math.min(a * one, 1 - total + one));

/** Per category the least probability with which a draw of it is released as it is; null for `nearest`. */
export function releasedAsItself(sampler) {
  if (sampler.rule === "nearest") return null;
  return sampler.rule === "kernel" ? sampler.kernel.diagonal : leastOwn(sampler).map((one) => Math.min(one, 1));
}

/** The paper's Γ_f: the best worst case of any private linear sampler that keeps the prior. */
export function optimalUtility(q, epsilon, distance) {
  const others = sumOfOthers(q, whereSmallest(q));
  const boosted = exactExp(epsilon) * smallest(q);
  return ofPointMass(distance, boosted / (boosted + others), others / (boosted + others));
}

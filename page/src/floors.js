/**
 * The floor of every sampler: with what probability at least each category is released, whoever the user is.
 *
 * `samplerOf(name, q, epsilon, options)` is what the other files take. In doubles, for planning and showing: what is released
 * is computed from certified integers.
 */
import { minimaxKernel, mostLikely, responseKernel } from "./kernels.js";
import {
  EPSILON, clamp, countBelow, countUpTo, exactExp, exactSum, firstWhere, joined, largest, need, running, smallest, sum, sumFrom,
} from "./numbers.js";

/** Half of ε for suppressing, half for boosting. */
export const relative = (q, epsilon) => q.map((one) => one * Math.exp(-epsilon / 2));

/** The same for all, blind to the prior. */
export const uniform = (n, epsilon) => new Float64Array(n).fill(1 / (Math.expm1(epsilon) + n));

/** For users within a factor gamma of the prior. */
export function local(q, epsilon, gamma) {
  if (2 * Math.log(gamma) <= epsilon) return relative(q, epsilon);
  const kappa = (gamma + 1) / (gamma + exactExp(epsilon));
  return q.map((one) => one * kappa);
}

/** The floor of the paper's kernel. */
export const kernel = (q, epsilon) => minimaxKernel(q, epsilon).floor;

/** c = clip(θ/a; q/a, q), θ the root of θ(1 − 1/a) + Σ clip(θ/a; q_i/a, q_i) = 1 on the one segment that holds it. */
export function priorMinimax(q, epsilon) {
  const a = exactExp(epsilon);
  const shrink = exactExp(-epsilon);
  const spread = -Math.expm1(-epsilon);
  const sorted = q.toSorted();
  const grown = sorted.map((one) => a * one);
  const below = joined([0], running(sorted));
  const above = joined(sumFrom(sorted), [0]);
  const total = (theta) => {
    const raised = countBelow(sorted, theta);
    const full = countBelow(grown, theta);
    return theta * spread + below[full] + (raised - full) * shrink * theta + shrink * above[raised];
  };
  const knots = joined(sorted, grown).sort();
  const after = firstWhere(knots.length, (i) => total(knots[i]) >= 1);
  const left = after > 0 ? knots[after - 1] : 0;
  const right = after < knots.length ? knots[after] : Infinity;
  // Inside a segment both counts are constant: those raised by its left end, those full by it.
  const raised = countUpTo(sorted, left);
  const full = countUpTo(grown, left);
  const slope = spread + (raised - full) * shrink;
  const theta = clamp((1 - below[full] - shrink * above[raised]) / slope, left, right);
  return q.map((one) => clamp(theta * shrink, one * shrink, one));
}

/** The geometric mean of the relative mollifier's floor and the kernel's. */
export function blend(q, epsilon, weight) {
  const own = kernel(q, epsilon);
  return q.map((one, i) => one * Math.exp((1 - weight) * (-epsilon / 2) + weight * Math.log(own[i] / one)));
}

/** q^β; in sixteenths by square roots, which every machine rounds alike. */
export function power(q, exponent) {
  const sixteenths = 16 * exponent;
  if (exponent === 1) return q;
  if (!Number.isInteger(sixteenths)) return q.map((one) => one ** exponent);
  let root = q;
  let out = q.map(() => 1);
  for (const bit of [8, 4, 2, 1]) {
    root = root.map(Math.sqrt);
    if (sixteenths & bit) out = out.map((one, i) => one * root[i]);
  }
  return out;
}

/** The scales between which some cap is neither q nor a·q. */
export function powerRange(q, powers, a) {
  const ratio = q.map((one, i) => one / powers[i]);
  return [smallest(ratio), a * largest(ratio)];
}

/** c = clip(s·q^β; q, min(1, a·q))/a, from q^β and a. */
export const capsOf = (q, powers, a, scale) =>
  q.map((one, i) => clamp(scale * powers[i], one, Math.min(1, a * one)) / a);

/** The scale of power caps that boosts a record of the prior by √a, in the geometric mean. */
function usualScale(q, epsilon, exponent) {
  const entropy = exactSum(q.map((one) => -one * Math.log(one)));
  return Math.exp(epsilon / 2 - (1 - exponent) * entropy);
}

/** Power caps; `kept` is a promise that `promiseOf` has checked, or undefined. */
function powerCaps(q, epsilon, { scale, exponent = 0.5 }, kept) {
  need(exponent >= 0 && exponent <= 1, "exponent must lie between 0 and 1");
  const a = exactExp(epsilon);
  const powers = power(q, exponent);
  const [least, most] = powerRange(q, powers, a);
  const own = scale ?? clamp(usualScale(q, epsilon, exponent), least, most);
  need(least <= own && own <= most, `scale must lie between ${least} and ${most}`);
  const floor = capsOf(q, powers, a, own);
  return kept === undefined ? floor : promised(floor, priorMinimax(q, epsilon), a, kept);
}

/** 1 − the worst total variation of any user. */
export function keptMass(floor, a) {
  const least = smallest(floor);
  return Math.min(a * least, 1 - exactSum(floor) + least);
}

/** The floor, changed so that no user is further than 1 − promise: raised, then moved towards `reference`. */
export function promised(floor, reference, a, promise) {
  const least = promise / a;
  const raised = floor.map((one) => Math.max(one, least));
  const [start, end] = [raised, reference].map((one) => exactSum(one) - smallest(one));
  if (start <= 1 - promise) return raised;
  const share = start > end ? Math.min(1, (start - (1 - promise)) / (start - end)) : 1;
  return raised.map((one, i) => one + share * (reference[i] - one));
}

/** A promise as a number, or undefined; "best" is the largest that any sampler that keeps the prior can keep. */
export function promiseOf(q, epsilon, promise) {
  if (promise === undefined) return undefined;
  const most = keptMass(priorMinimax(q, epsilon), exactExp(epsilon));
  if (promise === "best") return most;
  need(promise >= 0 && promise <= most * (1 + 1e-12), `promise must lie between 0 and ${most}`);
  return Math.min(promise, most);
}

/** Floors and caps of nearest laws in units of 2^-62; where rounding closed the box, it is opened by some units. */
function unitBox(floor, a) {
  const units = (values) => Array.from(values, (one) => BigInt(Math.floor(one)));
  const low = units(floor.map((one) => one * 2 ** 62));
  const caps = floor.map((one) => Math.min(one * a, 1) * 2 ** 62);
  const missing = (1n << 62n) - units(caps).reduce((before, one) => before + one, 0n);
  const more = missing > 0n ? (2 * Number(missing)) / low.length : 0;
  return { low, high: units(caps.map((one) => one + more)).map((one, i) => (one > low[i] ? one : low[i])) };
}

const withFloor = (floor) => ({ rule: "clip", floor });
const withKernel = (kernel) => ({ rule: "kernel", kernel, floor: kernel.floor });

const MAKE = {
  minimax_kernel: (q, epsilon) => withKernel(minimaxKernel(q, epsilon)),
  kernel_clip: (q, epsilon) => withFloor(kernel(q, epsilon)),
  prior_minimax: (q, epsilon) => withFloor(priorMinimax(q, epsilon)),
  blend: (q, epsilon, { weight = 0.5 }) => {
    need(weight >= 0 && weight <= 1, "weight must lie between 0 and 1");
    return withFloor(blend(q, epsilon, weight));
  },
  power_caps: (q, epsilon, options) =>
    withFloor(powerCaps(q, epsilon, options, promiseOf(q, epsilon, options.promise))),
  relative_mollifier: (q, epsilon) => withFloor(relative(q, epsilon)),
  local_minimax: (q, epsilon, { gamma = 2 * Math.exp(epsilon / 2) }) => {
    need(gamma >= 1, "gamma must be at least 1");
    return withFloor(local(q, epsilon, gamma));
  },
  global_minimax: (q, epsilon) => withFloor(uniform(q.length, epsilon)),
  randomized_response: (q, epsilon) => withKernel(responseKernel(Array(q.length).fill(true), epsilon)),
  rr_with_prior: (q, epsilon) => withKernel(responseKernel(mostLikely(q, epsilon), epsilon)),
  nearest: (q, epsilon, { share = 0.5, geometry }) => {
    need(share > 0 && share < 1, "share must lie between 0 and 1");
    need(geometry, "nearest needs a geometry");
    const factor = exactExp(-share * epsilon);
    const floor = q.map((one) => one * factor);
    return { rule: "nearest", geometry, floor, box: unitBox(floor, exactExp(epsilon)) };
  },
};

/** The catalogue in the library's order; `nearest` needs a geometry and is apart. */
export const SAMPLERS = Object.keys(MAKE).filter((name) => name !== "nearest");

/** A sampler by its name: its rule, floor and kernel, for a prior q that adds up to 1. */
export function samplerOf(name, q, epsilon, options = {}) {
  need(Object.hasOwn(MAKE, name), `there is no sampler ${name}`);
  need(epsilon > 0 && epsilon <= 100, "epsilon must be above 0 and at most 100");
  const own = Float64Array.from(q);
  const made = MAKE[name](own, epsilon, options);
  const released = made.floor.filter(Boolean).length;
  return { name, options, q: own, epsilon, a: exactExp(epsilon), total: sum(made.floor), released, ...made };
}

/** Whether data equal to the prior are released as they are, up to rounding. */
export function keepsPrior({ rule, q, floor, a, kernel }) {
  const slack = 1e-12 + q.length * EPSILON;
  if (rule === "kernel") return kernel.apply(q).every((x, i) => Math.abs(x - q[i]) <= slack * q[i]);
  return q.every((one, i) => floor[i] * (1 - slack) <= one && one <= a * floor[i] * (1 + slack));
}

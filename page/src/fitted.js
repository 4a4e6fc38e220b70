/** Power caps chosen from the prior alone, the same as the library's: scale and exponent agree bit for bit. */
import { capsOf, power, powerRange, priorMinimax, promiseOf, promised, samplerOf } from "./floors.js";
import { UNITS, invented } from "./invented.js";
import { descending, exactExp, need, pick } from "./numbers.js";

const EXPONENTS = [8, 7, 6, 5, 4, 3, 2, 1, 0].map((eighths) => eighths / 8);
/** Scales: the range halved five times in the logarithm, 31 values. */
const HALVINGS = 5;
const TAIL = 0.1;
/** The tail is the mean of the worst hundredth. */
const WORST = 100;

const known = new Map();

/** Invented users of a prior in descending order; the last of each crowd are kept, for they do not depend on ε. */
export function crowdOf(q, crowd) {
  const last = known.get(crowd);
  if (last?.q.length === q.length && last.q.every((one, i) => one === q[i])) return last.rows;
  const rows = invented(q, crowd);
  known.set(crowd, { q, rows });
  return rows;
}

/** The scales of an exponent; geometric means by square roots, which every machine rounds alike. */
function scalesOf(range) {
  let scales = range;
  for (let k = 0; k < HALVINGS; k++)
    scales = scales.flatMap((one, i) => (i ? [Math.sqrt(scales[i - 1]) * Math.sqrt(one), one] : [one]));
  return scales.slice(1, -1);
}

/** Total variation of every user to the box, in integer units; null as soon as their sum is above `most`. */
function distancesOf({ starts, columns, units }, low, high, most) {
  const all = low.reduce((before, one) => before + one, 0);
  const out = new Float64Array(starts.length - 1);
  let sofar = 0;
  for (let user = 0; user < out.length; user++) {
    if (sofar > most) return null;
    let over = 0;
    let kept = 0;
    for (let k = starts[user]; k < starts[user + 1]; k++) {
      const own = units[k];
      const cap = high[columns[k]];
      const floor = low[columns[k]];
      if (own > cap) over += own - cap;
      kept += own < floor ? own : floor;
    }
    sofar += out[user] = Math.max(over, all - kept);
  }
  return out;
}

/** The mean of integers below 2^46, rounded once although their sum may pass 2^53. */
export function exactMean(values) {
  let total = 0n;
  for (let begin = 0; begin < values.length; begin += 64)
    total += BigInt(values.subarray(begin, begin + 64).reduce((before, one) => before + one, 0));
  const count = BigInt(values.length);
  const scaled = total << 64n;
  const odd = scaled % count ? 1n : 0n; // something is left: no tie
  return Number(((scaled / count) << 1n) | odd) / 2 ** 65;
}

/** Mean + tail·(mean of the worst hundredth), in units; ∞ where the mean alone is clearly above the best so far. */
function scoreOf(floor, a, crowd, tail, best) {
  const units = (values) => values.map((one) => Math.floor(one * UNITS));
  const most = best * (crowd.starts.length - 1) * (1 + 1e-9);
  const distances = distancesOf(crowd, units(floor), units(floor.map((one) => one * a)), most);
  if (!distances) return Infinity;
  const mean = exactMean(distances);
  return mean + tail * exactMean(distances.sort().subarray(-Math.ceil(distances.length / WORST)));
}

/** Power caps with the exponent and the scale of 279 pairs that serve invented users best. */
export function fitted(q, epsilon, { tail = TAIL, promise } = {}) {
  need(tail >= 0, "tail must not be negative");
  const own = Float64Array.from(q);
  const ranked = pick(own, descending(own));
  const crowd = crowdOf(ranked, 0);
  const a = exactExp(epsilon);
  const kept = promiseOf(own, epsilon, promise);
  const reference = priorMinimax(ranked, epsilon);
  let best = Infinity;
  let chosen = { scale: 1, exponent: 1 };
  for (const exponent of EXPONENTS) {
    const powers = power(ranked, exponent);
    for (const scale of scalesOf(powerRange(ranked, powers, a))) {
      const caps = capsOf(ranked, powers, a, scale);
      const floor = kept === undefined ? caps : promised(caps, reference, a, kept);
      const score = scoreOf(floor, a, crowd, tail, best);
      if (score < best) {
        best = score;
        chosen = { scale, exponent };
      }
    }
  }
  const options = kept === undefined ? chosen : { ...chosen, promise: kept };
  return { ...samplerOf("power_caps", own, epsilon, options), name: "fitted" };
}

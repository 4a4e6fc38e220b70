/** A stream from a prior, in the library's integers: what `certify(stream(prior, epsilon, horizon=…))` would write. */
import { ratio } from "../../clients/js/src/numbers.js";
import { firstState, prepareStream, roomOf, stepFrom, stepLaw, unitsOf, unitsOfR } from "../../clients/js/src/steps.js";
import { between } from "./distances.js";
import { descending, need } from "./numbers.js";

/** The largest ε of a stream: e^ε must be below 2^40. */
export const LARGEST = 27;
const SHARE = 1n << 40n;

/** A positive double as an exact fraction [a, b]. */
function fractionOf(x) {
  let below = 1n;
  for (; !Number.isInteger(x); x *= 2) below *= 2n;
  return [BigInt(x), below];
}

/** ⌊2^64·e^x⌋/2^64 as [a, b]. */
const exponential = (x) => ratio(...fractionOf(x)).split("/").map(BigInt);

/** ⌊q·2^40⌋, the rest one each to the likeliest. */
export function priorUnits(q) {
  const units = Array.from(q, (one) => BigInt(Math.floor(one * 2 ** 40)));
  const spare = Number(SHARE - units.reduce((a, b) => a + b, 0n));
  const each = Math.floor(spare / q.length);
  const some = spare - each * q.length;
  descending(q).forEach((i, rank) => (units[i] += BigInt(each + (rank < some ? 1 : 0))));
  need(units.every((one) => one >= 1n), "a category is too rare for a stream: merge it with another");
  return units;
}

/** θ of every release, in 256ths: 1.5/(releases left)^0.75, at most 1. */
const paceOf = (horizon) =>
  Array.from({ length: horizon }, (_, k) => Math.min(256, Math.max(1, Math.floor((256 * 1.5) / (horizon - k) ** 0.75))));

/** The public settings of a stream that is planned for `horizon` releases; with a geometry its laws are the nearest ones. */
export function streamOf(q, epsilon, horizon, geometry) {
  need(epsilon > 0 && epsilon <= LARGEST, `the epsilon of a stream must be at most ${LARGEST}`);
  const [up, down] = exponential(epsilon);
  const { one, most } = unitsOfR(up, down);
  const [over, under] = exponential(epsilon * (0.25 + 0.25 / horizon ** 0.5));
  const start = (over * one) / under;
  const near = geometry ? { parents: geometry.parents, lengths: geometry.lengths } : {};
  return {
    epsilon: [up, down], prior: priorUnits(q), n: q.length, start: start < most ? start : most, pace: paceOf(horizon), persistence: 0,
    one, most, ...near,
  };
}

/** A user of a stream from probabilities: integer counts in units of 2^-40. */
const countsOf = ({ mine, own }) => ({ mine: [...mine], counts: Array.from(own, (one) => BigInt(Math.max(1, Math.round(one * 2 ** 40)))) });

/** A uniform integer below 2^62 from the browser's randomness. */
function randomWord() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(high & 0x3fffffff) << 32n) | BigInt(low);
}

/** The law of the next release as probabilities. */
export const lawOfStep = (ready, user, state) =>
  Float64Array.from(unitsOf(stepLaw(ready, countsOf(user), state), ready.n), (one) => Number(one) / 2 ** 62);

/** So many releases of a user: per release its category, how far its law is from the user's data, and the room that is left. */
export function visits(parts, user, count, measure, wordOf = randomWord) {
  const ready = prepareStream(parts);
  let state = firstState(parts);
  return Array.from({ length: count }, () => {
    const distance = between(measure, user.p, lawOfStep(ready, user, state));
    let category;
    [category, state] = stepFrom(ready, countsOf(user), state, wordOf());
    return { category, distance, room: roomOf(parts, state) };
  });
}


/**
 * The steps of a stream: the bounds of the ratio R, the law of a step, and what a word draws from it. docs/format.md has
 * the rules, and docs/streams.md the proof. A state is { step, low, high, last }; low and high enclose R in units of 1/one.
 */
import { first, running } from "./box.js";
import { nearestLaw, targetsOf } from "./nearest.js";
import { N, ceil, digits, sum } from "./numbers.js";
import { need } from "./refuse.js";

const RATIO = 22n; // a ratio is in units of 2^-22, and the prior in units of 2^-40
const SHARE = 1n << 40n;
const OCTAVE = 64;

const clamp = (x, low, high) => (x < low ? low : x > high ? high : x);
const root = (number) => {
  for (let x = 1n << BigInt((digits(number) + 1) >> 1); ; ) {
    const y = (x + number / x) >> 1n;
    if (y >= x) return x;
    x = y;
  }
};

/** ⌊2^(22 + g/64)⌋ for g = 0 … 2,559, made once. */
let levels;
const levelsOf = () =>
  (levels ??= (() => {
    const roots = Array.from({ length: OCTAVE }, (_, j) => {
      let x = 1n << BigInt(OCTAVE * 62 + j);
      for (let i = 0; i < 6; i++) x = root(x);
      return x;
    });
    return Array.from({ length: 40 * OCTAVE }, (_, g) => roots[g % OCTAVE] >> BigInt(40 - Math.floor(g / OCTAVE)));
  })());

/** 1 and A in the units of R, of which there are less than 2^62. */
export const unitsOfR = (up, down) => {
  const one = 1n << BigInt(62 - digits(up / down));
  return { one, most: (one * up) / down };
};
export const firstState = ({ epsilon, start }) => Object.freeze({ epsilon: epsilon.join("/"), step: 0, low: start, high: start, last: null });
/**
 * Whoever lost R: from then on the public law of each step is released. With persistence that lies around the last
 * release, which is named as in the file that released it; null where nothing was released, or that is lost too.
 */
export function lostState(parts, step, last) {
  const { epsilon, one, most, position } = parts;
  need(last === null || position.has(last), "call", "the last release must be given: a category of the file that released it, or null");
  return Object.freeze(checkedState(parts, { epsilon: epsilon.join("/"), step, low: one, high: most, last: last === null ? null : position.get(last) }));
}

/** Everything that a step needs and no user changes. */
export function prepareStream(parts) {
  const again = BigInt(1024 - parts.persistence);
  const shares = parts.prior.map((one) => clamp((one * again) / 1024n, 1n, SHARE));
  return { ...parts, before: running(parts.prior), beforeAgain: parts.persistence ? running(shares) : null };
}

/** The least and the largest ratio of a step. */
export function ratios({ one, most, pace }, { low, high, step }) {
  const least = ceil(one << RATIO, low);
  let cap = clamp((most << RATIO) / high, 0n, N);
  const theta = pace[Math.min(step, pace.length - 1)];
  if (theta < 256) {
    const list = levelsOf();
    const g = first(0, list.length, (i) => list[i] > cap) - 1;
    cap = list[Math.floor((g * theta) / 256)];
  }
  return [least, cap];
}

/** The law of a step with a geometry: all positions are own ones. */
function nearestStep(ready, user, least, cap, last, before) {
  const own = ready.prior.map((_, i) => i);
  const prior = own.map((i) => before[i + 1] - before[i] + (i === last ? SHARE - before[ready.n] : 0n));
  const targets = user.mine.length ? targetsOf(user, ready.n) : prior.map((one) => one << RATIO);
  const high = prior.map((one) => clamp(cap * one, 0n, N));
  const weights = nearestLaw(targets, prior.map((one) => least * one), high, ready);
  return { own, prior, weights, level: least, more: 0n, others: 0n, before };
}

/** The law of a step: own positions with their prior and units, and one ratio for all others. */
export function stepLaw(ready, user, state) {
  const [least, cap] = ratios(ready, state);
  const last = ready.beforeAgain && state.last !== null && state.last < ready.n ? state.last : null;
  const before = last === null ? ready.before : ready.beforeAgain;
  if (ready.parents) return nearestStep(ready, user, least, cap, last, before);
  const { mine, counts } = user;
  const cut = BigInt(Math.max(digits(sum(counts)) - 41, 0));
  const kept = counts.map((one) => one >> cut);
  const total = sum(kept);
  const shares = new Map(mine.map((i, j) => [i, (kept[j] << 62n) / total]));
  if (last !== null && !shares.has(last)) shares.set(last, 0n);
  const own = [...shares.keys()].sort((a, b) => a - b);
  const prior = own.map((i) => before[i + 1] - before[i] + (i === last ? SHARE - before[ready.n] : 0n));
  const wanted = own.map((i, j) => clamp(shares.get(i) / prior[j], least, cap));
  const others = SHARE - sum(prior);
  const units = sum(wanted.map((one, j) => one * prior[j]));
  const raised = units + least * others <= N;
  const sign = raised ? 1n : -1n;
  let left = raised ? N - units : N - least * others;
  let slope = raised ? others : sum(prior);
  const order = own.map((_, j) => j).sort((a, b) => (wanted[a] < wanted[b] ? -1 : wanted[a] > wanted[b] ? 1 : a - b));
  for (const j of order) {
    if (wanted[j] * slope > left) break;
    left += sign * wanted[j] * prior[j];
    slope += sign * prior[j];
  }
  const level = left / slope;
  let more = left % slope;
  const weights = wanted.map((one, j) => {
    const atLevel = raised ? one <= level : one > level;
    const extra = atLevel ? clamp(more, 0n, prior[j]) : 0n;
    more -= extra;
    return (atLevel ? level : one) * prior[j] + extra;
  });
  const law = { own, prior, weights, level: raised ? level : least, more, others, before };
  const inside = weights.every((one, j) => least * prior[j] <= one && one <= cap * prior[j]);
  const rest = !others || (least <= law.level && law.level + (more ? 1n : 0n) <= cap && more <= others);
  need(inside && rest && sum(weights) + law.level * others + more === N, "certificate", "a law left its box");
  return law;
}

/** What a position that is not the user's own has: its prior, its units, and the prior units of others before it. */
function other(law, i) {
  let begin = law.before[i];
  law.own.forEach((j) => j < i && (begin -= law.before[j + 1] - law.before[j]));
  const prior = law.before[i + 1] - law.before[i];
  return [prior, law.level * prior + clamp(law.more - begin, 0n, prior)];
}

/** The units of every position: for tests. */
export const unitsOf = (law, n) =>
  Array.from({ length: n }, (_, i) => (law.own.includes(i) ? law.weights[law.own.indexOf(i)] : other(law, i)[1]));

/** The position that a word falls into, its prior and its units: own positions come first. */
function located(law, word) {
  for (const [j, i] of law.own.entries()) {
    if (word < law.weights[j]) return [i, law.prior[j], law.weights[j]];
    word -= law.weights[j];
  }
  const rich = law.more * (law.level + 1n);
  let at = word < rich ? word / (law.level + 1n) : law.more + (word - rich) / law.level;
  for (const i of law.own) {
    if (at < law.before[i]) break;
    at += law.before[i + 1] - law.before[i];
  }
  const i = first(0, law.before.length - 2, (k) => at < law.before[k + 1]);
  return [i, ...other(law, i)];
}

/** One release: the position, and the next state. */
export function stepFrom(ready, user, state, word) {
  const [i, prior, units] = located(stepLaw(ready, user, state), word);
  const low = (state.low * (units / prior)) >> RATIO;
  const high = ceil(state.high * ceil(units, prior), 1n << RATIO);
  return [i, Object.freeze({
    epsilon: state.epsilon,
    step: state.step + 1,
    low: low < ready.one ? ready.one : low,
    high: high > ready.most ? ready.most : high,
    last: ready.persistence ? i : null,
  })];
}

/** What a state leaves, from 1 down to 0, where only the public law can be released: 2·min(ln R, ε − ln R)/ε. For showing. */
export const roomOf = ({ one, most }, { low, high }) => {
  const log = (a, b) => Math.log(Number(a) / Number(b));
  return Math.max((2 * Math.min(log(low, one), log(most, high))) / log(most, one), 0);
};

/** CRC-32 in hexadecimal, of ASCII. */
function checksum(text) {
  let rest = -1;
  for (let at = 0; at < text.length; at++) {
    rest ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (0xedb88320 & -(rest & 1));
  }
  return (~rest >>> 0).toString(16).padStart(8, "0");
}

const RECORD = /^((\d{1,80}\/\d{1,400}) (0|[1-9]\d{0,14}) ([1-9]\d{0,18}) ([1-9]\d{0,18}) (-|0|[1-9]\d{0,14})) ([0-9a-f]{8})$/;

/** A state as one record, whose checksum shows damage, a missing part and a mixture of two; and back. */
export function textOf({ epsilon, step, low, high, last }) {
  const record = [epsilon, step, low, high, last ?? "-"].join(" ");
  return record + " " + checksum(record);
}
export function stateOf(parts, text) {
  const [, record, epsilon, step, low, high, last, given] = (typeof text === "string" && RECORD.exec(text)) || [];
  const state = record && { epsilon, step: Number(step), low: BigInt(low), high: BigInt(high), last: last === "-" ? null : Number(last) };
  need(state && given === checksum(record) && isState(parts, state), "budget", "the state of the stream is damaged; nothing is released");
  return state;
}

/** Whether a state can be one of this stream. */
function isState({ epsilon, one, most }, state) {
  const { step, low, high, last } = Object(state);
  const whole = Number.isSafeInteger(step) && step >= 0 && (last === null || (Number.isSafeInteger(last) && last >= 0));
  const enclosed = typeof low === "bigint" && typeof high === "bigint" && one <= low && low <= high && high <= most;
  return Object(state).epsilon === epsilon.join("/") && whole && enclosed;
}

export function checkedState(parts, state) {
  need(isState(parts, state), "call", "a state of this stream is needed: start() for the first release");
  return state;
}

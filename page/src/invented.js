/**
 * Users invented from a prior, the same as the library's, bit for bit.
 *
 * Broken sticks, a third each far from the prior, in between and near it. Random words are SplitMix64's finaliser of a counter,
 * in halves of 32 bits; everything else are integers below 2^53 and square roots.
 */
import { exactSum } from "./numbers.js";

/** A distribution is integers that add up to 2^45. */
export const UNITS = 2 ** 45;
const HALF = 2 ** 30;
const CLOSENESS = [1, 3, 10];
const MOST = 512;
const EACH = 400;

/** The upper half of a product of two unsigned numbers of 32 bits. */
const upper = (a, b) => Math.floor(((a >>> 16) * b + Math.floor(((a & 0xffff) * b) / 65536)) / 65536);

/** The random words of one stream, their upper and lower halves. */
export function randomWords(stream, count) {
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  let up = Math.imul(stream << 8, 0x7f4a7c15); // (stream << 40)·0x9E3779B97F4A7C15, to which the latter is added each time
  let down = 0;
  for (let i = 0; i < count; i++) {
    const next = (down + 0x7f4a7c15) >>> 0;
    up = (up + 0x9e3779b9 + (next < down ? 1 : 0)) | 0;
    down = next;
    let a = (up ^ (up >>> 30)) >>> 0;
    let b = (down ^ ((up << 2) | (down >>> 30))) >>> 0;
    let c = (upper(b, 0x1ce4e5b9) + Math.imul(a, 0x1ce4e5b9) + Math.imul(b, 0xbf58476d)) >>> 0;
    b = Math.imul(b, 0x1ce4e5b9) >>> 0;
    a = (c ^ (c >>> 27)) >>> 0;
    b = (b ^ ((c << 5) | (b >>> 27))) >>> 0;
    c = (upper(b, 0x133111eb) + Math.imul(a, 0x133111eb) + Math.imul(b, 0x94d049bb)) >>> 0;
    b = Math.imul(b, 0x133111eb);
    high[i] = c ^ (c >>> 31);
    low[i] = b ^ ((c << 1) | (b >>> 31));
  }
  return { high, low };
}

/** Positions in ascending order of the words: by sixteen bits twice, and the few equal upper halves by the lower ones. */
export function sortedWords({ high, low }) {
  const count = high.length;
  let order = Uint32Array.from(high.keys());
  for (const shift of [0, 16]) {
    const ends = new Uint32Array(65537);
    for (let i = 0; i < count; i++) ends[((high[i] >>> shift) & 0xffff) + 1]++;
    for (let k = 0; k < 65536; k++) ends[k + 1] += ends[k];
    const next = new Uint32Array(count);
    for (const i of order) next[ends[(high[i] >>> shift) & 0xffff]++] = i;
    order = next;
  }
  for (let k = 1; k < count; k++) {
    const own = order[k];
    let j = k;
    for (; j && high[order[j - 1]] === high[own] && low[order[j - 1]] > low[own]; j--) order[j] = order[j - 1];
    order[j] = own;
  }
  return order;
}

/** `factor`·√(1/Σq²) rounded to r·2^j with 1 ≤ r ≤ 8: the pair r, j. */
export function closeness(q, factor) {
  let wanted = Math.min(factor * Math.sqrt(1 / exactSum(q.map((one) => one * one))), MOST);
  let doublings = 0;
  for (; wanted > 8; doublings++) wanted /= 2;
  return [Math.max(1, Math.floor(wanted + 0.5)), doublings];
}

/** What breaking leaves of the sticks, below 2^30: the largest of some uniform numbers, and its square root again and again. */
function leftOver(count, most, doublings, stream) {
  const left = new Uint32Array(count);
  for (let k = 0; k < most; k++) {
    const { high } = randomWords(stream + k, count);
    for (let i = 0; i < count; i++) left[i] = Math.max(left[i], high[i] >>> 2);
  }
  if (!doublings) return left;
  return left.map((one) => {
    let share = one / HALF;
    for (let k = 0; k < doublings; k++) share = Math.sqrt(share);
    return Math.floor(share * HALF);
  });
}

/** The category of each of `count` places, spread evenly: ⌊(2j + 1)·E/(2·count)⌋ among the running shares, E their end. */
function evenly(q, count) {
  let end = 0;
  const ends = q.map((one) => (end += Math.floor(one * 2 ** 38) + 1));
  const out = new Uint32Array(count);
  let place = Math.floor(end / (2 * count));
  let rest = end % (2 * count);
  for (let j = 0, category = 0; j < count; j++) {
    while (ends[category] <= place) category++;
    out[j] = category;
    place += Math.floor(end / count);
    rest += 2 * (end % count);
    if (rest >= 2 * count) {
      rest -= 2 * count;
      place++;
    }
  }
  return out;
}

/** Add the users of one kind to the lists: what the pieces of a stick put on each category. */
function addKind(q, factor, stream, { starts, columns, units }) {
  const [most, doublings] = closeness(q, factor);
  const pieces = 7 * (most << doublings);
  const left = leftOver(EACH * pieces, most, doublings, stream + 1);
  const places = evenly(q, EACH * (pieces + 1));
  const order = sortedWords(randomWords(stream, places.length));
  const amounts = new Float64Array(q.length);
  for (let user = 0, at = 0; user < EACH; user++) {
    let stick = UNITS;
    for (let j = 0; j <= pieces; j++, at++) {
      // ⌊⌊stick/2^15⌋·share/2^15⌋ in two parts, because the product has 60 bits.
      const share = j < pieces ? left[user * pieces + j] : 0;
      const short = Math.floor(stick / 32768);
      const rest = short * (share >>> 15) + Math.floor((short * (share & 32767)) / 32768);
      amounts[places[order[at]]] += stick - rest;
      stick = rest;
    }
    amounts.forEach((amount, i) => {
      if (!amount) return;
      columns.push(i);
      units.push(amount);
    });
    amounts.fill(0);
    starts.push(columns.length);
  }
}

/** 1,200 users invented from a prior in descending order: sparse rows of integer units. Crowds differ in their words. */
export function invented(q, crowd = 0) {
  const lists = { starts: [0], columns: [], units: [] };
  CLOSENESS.forEach((factor, kind) => addKind(q, factor, 10_000 * crowd + 100 * kind, lists));
  return {
    starts: Uint32Array.from(lists.starts),
    columns: Uint32Array.from(lists.columns),
    units: Float64Array.from(lists.units),
  };
}

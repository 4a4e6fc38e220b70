import { drawBox, first, prepareBox, publicLaw, running, within } from "./box.js";
import { nearestOf } from "./nearest.js";
import { N, sum } from "./numbers.js";

/** How many words of 8 bytes a release reads. */
export const WORDS = { box: 1, nearest: 1, kernel: 3, response: 2, survey: 3 };

/** The words of the bytes: little-endian, without their two lowest bits. */
export const wordsOf = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 8 }, (_, j) => view.getBigUint64(8 * j, true) >> 2n);
};

/**
 * The position of the record with number ⌊word·K/N⌋, records being in ascending order of their positions.
 * The public has N records, so that this number is the word.
 */
const choose = ({ mine, counts }, word, ends) => {
  if (!mine.length) return within(ends, word);
  let number = (word * sum(counts)) >> 62n;
  let j = 0;
  while (number >= counts[j]) number -= counts[j++];
  return mine[j];
};

const DRAW = {
  box: drawBox,
  nearest: (parts, user, [word]) => within(running(nearestOf(parts, user)), word),

  kernel({ n, order, own, ready: { rank, lows, priors, ends } }, user, [word, u, v]) {
    const r = rank[choose(user, word, ends)];
    if (u < lows[r]) return order[first(0, r, (j) => u < lows[j + 1])];
    if (u < lows[r] + own[r]) return order[r];
    const y = priors[r + 1] + ((v * (N - priors[r + 1])) >> 62n);
    return order[first(r + 1, n - 1, (j) => y < priors[j + 1])];
  },

  response({ kept, own, other, ready: { number, ends } }, user, [word, u]) {
    const i = choose(user, word, ends);
    if (!number.has(i)) return kept[Number((u * BigInt(kept.length)) >> 62n)];
    if (u < own) return i;
    const j = Number((u - own) / other);
    return kept[j < number.get(i) ? j : j + 1];
  },

  survey({ n, base, reports, own, other }, user, [word, asked, u]) {
    let place = user.mine.length ? choose(user, word) : Number((word * BigInt(n)) >> 62n);
    const question = Number((asked * BigInt(reports / base)) >> 62n);
    let [first, power] = [0, 1];
    while (question >= first + power) {
      first += power;
      power *= base;
    }
    let right = 0;
    for (let vector = power + question - first; vector; vector = Math.floor(vector / base)) {
      right = (right + (vector % base) * place) % base;
      place = Math.floor(place / base);
    }
    const j = Number((u - own) / other);
    return question * base + (u < own ? right : j < right ? j : j + 1);
  },
};

/** `ends` are the sums of what the public has: for a box its law, otherwise its records by position. */
const PREPARE = {
  box: prepareBox,
  nearest: (box) => ({ targets: publicLaw(box) }),
  kernel({ order, low, prior }) {
    const rank = [];
    order.forEach((i, j) => (rank[i] = j));
    return { rank, lows: running(low), priors: running(prior), ends: running(rank.map((j) => prior[j])) };
  },
  survey: () => ({}),
  response: ({ kept, prior }) => ({ number: new Map(kept.map((i, j) => [i, j])), ends: running(prior) }),
};

/** Everything that a release needs and no user changes. */
export const prepare = (parts) => ({ ...parts, ready: PREPARE[parts.kind](parts) });

/** The position that is released from these bytes. Not part of the package: a release has no seed. */
export const draw = (ready, user, bytes) => DRAW[ready.kind](ready, user, wordsOf(bytes));

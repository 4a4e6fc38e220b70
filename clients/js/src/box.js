import { N, sum } from "./numbers.js";

const LOW = 0;
const FREE = 1;
const HIGH = 2;

/**
 * Solve Σ clamp(m·c, low, high) = target: the state of each, LOW, FREE or HIGH, and m as [top, bottom].
 * Those that are FREE get x = top·c/bottom.
 */
function clip(c, low, high, target) {
  const state = new Uint8Array(c.length);
  let free = c.map((_, j) => j);
  let sigma = sum(c);
  for (;;) {
    const lists = [[], [], []];
    let excess = 0n;
    for (const j of free) {
      const share = target * c[j];
      const below = low[j] * sigma - share;
      const above = share - high[j] * sigma;
      const mark = below >= 0n ? LOW : above >= 0n ? HIGH : FREE;
      lists[mark].push(j);
      if (mark !== FREE) excess += mark ? -above : below;
    }
    const fix = (mark, bound) => {
      for (const j of lists[mark]) {
        state[j] = mark;
        target -= bound[j];
        sigma -= c[j];
      }
      lists[mark] = [];
    };
    if (excess >= 0n) fix(LOW, low);
    if (excess <= 0n) fix(HIGH, high);
    free = lists.flat();
    if (!excess || !free.length) {
      for (const j of free) state[j] = FREE;
      return [state, free.length ? [target, sigma] : [0n, 1n]];
    }
  }
}

/** Whole weights from a solution: x rounded down, and the missing units to the first that are not whole. */
export function rounded(c, low, high, [state, [top, bottom]], missing) {
  const broken = [];
  const weights = c.map((one, j) => {
    const x = top * one;
    const w = state[j] === FREE ? x / bottom : state[j] ? high[j] : low[j];
    if (state[j] === FREE && w * bottom !== x) broken.push(j);
    missing -= w;
    return w;
  });
  for (const j of broken.slice(0, Number(missing))) weights[j]++;
  return weights;
}

/** The law of the public, a user whose counts are the prior. */
export const publicLaw = ({ prior, low, high, keeps }) =>
  keeps ? prior : rounded(prior, low, high, clip(prior, low, high, N), N);

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

/** The index of the interval that holds a word, `ends` being running sums. */
export const within = (ends, word) => first(0, ends.length - 2, (i) => word < ends[i + 1]);

/** The halves of 32 bits of each weight, one behind the other: sums of fewer than MANY stay whole in a double. */
const halves = (list) => new Uint32Array(BigUint64Array.from(list).buffer);
const MANY = 2 ** 21;
const UP = new Uint8Array(Uint16Array.of(1).buffer)[0]; // where the upper half is: 1, or 0 on a big-endian machine

/**
 * What a release needs and no user changes. As m grows, position i leaves its floor at the knot low_i/prior_i and
 * reaches its cap at high_i/prior_i. Knots are rounded down to cells of a grid and sorted; before each cell, the sum of
 * all x is flat + m·slope. At the points of the grid the rounding changes no comparison, so that these sums are exact.
 */
export function prepareBox({ low, high, prior, n }) {
  const count = 2 * n;
  const most = Math.floor(2 ** 53 / count) - 1; // cell·count + number of the knot is whole in a double, and sorts fast
  const grid = BigInt(Math.floor(Math.log2(most)) - 8);
  const knots = (bound) => new Float64Array(n).map((_, i) => Math.min(Number((bound[i] << grid) / prior[i]), most));
  const leave = knots(low);
  const reach = knots(high);
  const keys = new Float64Array(count).map((_, e) => (e < n ? leave[e] : reach[e - n]) * count + e).sort();
  const lows = running(low);
  let flat = lows[n];
  let slope = 0n;
  const cells = [];
  const flats = [];
  const slopes = [];
  keys.forEach((key) => {
    const e = key % count;
    const cell = (key - e) / count;
    if (cell !== cells.at(-1)) {
      cells.push(cell);
      flats.push(flat);
      slopes.push(slope);
    }
    flat += e < n ? -low[e] : high[e - n];
    slope += e < n ? prior[e] : -prior[e - n];
  });
  flats.push(flat);
  slopes.push(slope);
  return { grid, leave, reach, cells, flats, slopes, lows, limbs: [low, prior, high].map(halves) };
}

/** Step 2: the user's positions are at their caps; a solution for all positions. */
function spread({ low, high, prior, n, ready }, mine, target) {
  const { grid, leave, reach, cells, flats, slopes } = ready;
  /** target − flat, and slope, without some positions, at a point of the grid that has t cells with knots before it. */
  const line = (t, point, without) => {
    let rest = target - flats[t];
    let slope = slopes[t];
    for (const i of without) {
      if (leave[i] >= point) rest += low[i];
      else if (reach[i] >= point) slope -= prior[i];
      else rest += high[i];
    }
    return [rest, slope];
  };
  const beyond = (t, point) => {
    const [rest, slope] = line(t, point, mine);
    return BigInt(point) * slope > rest << grid;
  };
  let t = first(0, cells.length, (s) => beyond(s, cells[s])) - 1;
  let point = cells[t];
  const open = []; // those with a knot in the cell of m, if there are any: only they are undecided
  if (beyond(t + 1, point + 1)) {
    for (let i = 0; i < n; i++) if ((leave[i] === point || reach[i] === point) && !mine.includes(i)) open.push(i);
  } else {
    t++;
    point++;
  }
  const state = new Uint8Array(n);
  for (let i = 0; i < n; i++) state[i] = leave[i] >= point ? LOW : reach[i] >= point ? FREE : HIGH;
  for (const i of mine) state[i] = HIGH;
  let m = line(t, point, mine.concat(open));
  if (open.length) {
    const pick = (list, rest) => [...open.map((i) => list[i]), rest]; // all that are free are one more, without bounds
    const [found, solved] = clip(pick(prior, m[1]), pick(low, 0n), pick(high, N), m[0]);
    open.forEach((i, j) => (state[i] = found[j]));
    m = solved;
  }
  return [state, m[1] ? m : [0n, 1n]];
}

/** Step 2: the position of a word. Sums of x tell it unless the word lies within n units of one of them. */
function find({ low, high, prior, n, ready: { limbs } }, solved, word) {
  const [state, [top, bottom]] = solved;
  const here = word * bottom;
  let from = 0;
  let to = n - 1;
  let before = [0, 0, 0, 0]; // fixed and free weights before `from`, in halves
  let under = 0n; // the sum of x before `from`, and up to `to`, both times bottom
  let over = N * bottom;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    let [a, b, c, d] = before;
    for (let i = from; i < middle; i++) {
      const mark = state[i];
      const up = limbs[mark][2 * i + UP];
      const down = limbs[mark][2 * i + 1 - UP];
      if (mark === FREE) {
        c += up;
        d += down;
      } else {
        a += up;
        b += down;
      }
    }
    const join = (up, down) => (BigInt(up) << 32n) + BigInt(down);
    const x = join(a, b) * bottom + join(c, d) * top;
    if (here < x) {
      to = middle - 1;
      over = x;
    } else {
      from = middle;
      before = [a, b, c, d];
      under = x;
    }
  }
  const near = BigInt(n) * bottom;
  if (n < MANY && (!from || here - under >= near) && (from === n - 1 || over - here > near)) return from;
  return within(running(rounded(prior, low, high, solved, N)), word);
}

/** Step 1 gives `own`, the whole weights of the user's positions; step 2 gives `all`, a solution for all positions. */
export function solve(box, { mine, counts }) {
  const low = mine.map((i) => box.low[i]);
  const high = mine.map((i) => box.high[i]);
  const filled = sum(high);
  const target = N - box.ready.lows[box.n] + sum(low);
  if (filled < target) return { all: spread(box, mine, N - filled) };
  return { own: rounded(counts, low, high, clip(counts, low, high, target), target) };
}

/** The position of a word, without computing the weights of the others. */
export function drawBox(box, user, [word]) {
  if (!user.mine.length) return within(box.ready.ends, word);
  const { own, all } = solve(box, user);
  if (all) return find(box, all, word);
  const { lows } = box.ready;
  let from = 0;
  let shift = 0n; // how much more than their floors the user's positions so far have
  for (const [j, i] of user.mine.entries()) {
    const start = lows[i] + shift;
    if (word < start) break;
    if (word < start + own[j]) return i;
    shift += own[j] - box.low[i];
    from = i + 1;
  }
  return first(from, box.n - 1, (i) => word < lows[i + 1] + shift);
}

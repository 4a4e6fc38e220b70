import { N } from "./numbers.js";

const GRID = 40n; // knots are sorted on a grid of 2^-40
const TOP = 2n ** 53n - 1n;
const HALF = (1n << 31n) - 1n;
const LOW = 0;
const FREE = 1;
const HIGH = 2;

/**
 * Solve Σ clamp(m·c, low, high) = target. Fills `state` with LOW, FREE or HIGH for each;
 * those that are FREE get x = top·c/bottom, the answer being [top, bottom].
 */
export function clip(c, low, high, target, state) {
  let free = c.map((_, j) => j);
  let sigma = c.reduce((a, b) => a + b, 0n);
  for (;;) {
    const floored = [];
    const capped = [];
    const inside = [];
    let excess = 0n;
    for (const j of free) {
      const share = target * c[j];
      const below = low[j] * sigma - share;
      const above = share - high[j] * sigma;
      if (below >= 0n) {
        floored.push(j);
        excess += below;
      } else if (above >= 0n) {
        capped.push(j);
        excess -= above;
      } else inside.push(j);
    }
    const fix = (list, bound, mark) => {
      for (const j of list) {
        state[j] = mark;
        target -= bound[j];
        sigma -= c[j];
      }
    };
    if (excess >= 0n) fix(floored, low, LOW);
    if (excess <= 0n) fix(capped, high, HIGH);
    if (excess === 0n) {
      for (const j of inside) state[j] = FREE;
      return sigma ? [target, sigma] : [0n, 1n];
    }
    free = inside.concat(excess > 0n ? capped : floored);
    if (!free.length) return [0n, 1n];
  }
}

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
  const found = [0n];
  for (const one of list) found.push((total += one));
  return found;
};

/** Two halves of 31 bits of each weight: sums of millions of them stay whole in a double. */
const halves = (list) => [
  Float64Array.from(list, (one) => Number(one >> 31n)),
  Float64Array.from(list, (one) => Number(one & HALF)),
];

/**
 * What a release needs and no user changes. As m grows, position i leaves its floor at the knot low_i/prior_i and
 * reaches its cap at high_i/prior_i. Knots are rounded down to the grid and sorted; before knot t, the sum of all
 * x is flat[t] + m·slope[t]. On the grid itself the rounding changes no comparison, so these sums are exact.
 */
export function prepareBox({ low, high, prior, n }) {
  const knot = (bound) => Float64Array.from(bound, (one, i) => {
    const cell = (one << GRID) / prior[i];
    return Number(cell < TOP ? cell : TOP);
  });
  const leave = knot(low);
  const reach = knot(high);
  const at = (e) => (e < n ? leave[e] : reach[e - n]);
  const events = Uint32Array.from({ length: 2 * n }, (_, e) => e).sort((e, f) => at(e) - at(f));
  const lows = running(low);
  let flat = lows[n];
  let slope = 0n;
  const flats = [flat];
  const slopes = [slope];
  for (const e of events) {
    const i = e < n ? e : e - n;
    flats.push((flat += e < n ? -low[i] : high[i]));
    slopes.push((slope += e < n ? prior[i] : -prior[i]));
  }
  const limbs = [...halves(low), ...halves(prior), ...halves(high)];
  return { leave, reach, events, cells: Float64Array.from(events, at), flats, slopes, lows, limbs };
}

/** Step 2: the user's positions are at their caps; the state of every position and m as [top, bottom]. */
function spread({ low, high, prior, n, ready }, mine, target) {
  const { leave, reach, events, cells, flats, slopes } = ready;
  const stateAt = (i, cell) => (leave[i] >= cell ? LOW : reach[i] >= cell ? FREE : HIGH);
  /** flat and slope before knot t, without some positions. */
  const before = (t, without) => {
    let flat = flats[t];
    let slope = slopes[t];
    for (const i of without) {
      const state = stateAt(i, cells[t]);
      if (state === FREE) slope -= prior[i];
      else flat -= state ? high[i] : low[i];
    }
    return [flat, slope];
  };
  const start = (t) => first(0, t, (s) => cells[s] >= cells[t]); // the first knot of the same cell
  const end = first(0, 2 * n, (t) => {
    const [flat, slope] = before(start(t), mine);
    return (flat << GRID) + BigInt(cells[t]) * slope > target << GRID;
  });
  const begin = start(end - 1);
  const cell = cells[begin];
  const state = new Uint8Array(n);
  for (let i = 0; i < n; i++) state[i] = leave[i] > cell ? LOW : reach[i] < cell ? HIGH : FREE;
  for (const i of mine) state[i] = HIGH;
  // Only positions with a knot in the cell of m are undecided; all free ones together are one more, without bounds.
  const owned = new Set(mine);
  const open = [...new Set(Array.from(events.subarray(begin, end), (e) => e % n))].filter((i) => !owned.has(i));
  const [flat, slope] = before(begin, [...mine, ...open]);
  const pick = (list, own) => [...open.map((i) => list[i]), ...(slope ? [own] : [])];
  const found = new Uint8Array(open.length + 1);
  const m = clip(pick(prior, slope), pick(low, 0n), pick(high, N), target - flat, found);
  open.forEach((i, j) => (state[i] = found[j]));
  return [state, m];
}

/** Step 2, all whole weights one by one. */
function spreadWeights({ low, high, prior }, [state, [top, bottom]]) {
  const broken = [];
  let missing = N;
  const weights = prior.map((one, i) => {
    const x = state[i] === FREE ? top * one : 0n;
    const w = state[i] === FREE ? x / bottom : state[i] ? high[i] : low[i];
    broken.push(state[i] === FREE && w * bottom !== x);
    missing -= w;
    return w;
  });
  for (let i = 0; missing; i++) if (broken[i]) {
    weights[i]++;
    missing--;
  }
  return weights;
}

/** Step 2, the category of a word. Sums of x tell it unless the word lies within n units of one of them. */
function spreadDraw(box, solved, word) {
  const { n, ready: { limbs: [lowUp, lowDown, priorUp, priorDown, highUp, highDown] } } = box;
  const [state, [top, bottom]] = solved;
  let from = 0;
  let to = n - 1;
  let base = [0, 0, 0, 0]; // fixed and free weights before `from`, in halves
  let under = 0n; // the sum of x before `from`, times bottom
  let over = N * bottom;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    let [a, b, c, d] = base;
    for (let i = from; i < middle; i++) {
      if (state[i] === FREE) { c += priorUp[i]; d += priorDown[i]; }
      else if (state[i] === LOW) { a += lowUp[i]; b += lowDown[i]; }
      else { a += highUp[i]; b += highDown[i]; }
    }
    const join = (up, down) => (BigInt(up) << 31n) + BigInt(down);
    const x = join(a, b) * bottom + join(c, d) * top;
    if (word * bottom < x) {
      to = middle - 1;
      over = x;
    } else {
      from = middle;
      base = [a, b, c, d];
      under = x;
    }
  }
  const near = BigInt(n) * bottom;
  const here = word * bottom;
  if ((from === 0 || here - under >= near) && (from === n - 1 || over - here > near)) return from;
  const ends = running(spreadWeights(box, solved));
  return first(0, n - 1, (i) => word < ends[i + 1]);
}

/** The user's part of a box: step 1 gives the whole weights of the user's positions, step 2 what `spread` solved. */
function solve(box, mine, counts) {
  const { low, high, ready } = box;
  const c = mine.map((i) => counts.get(i));
  const floors = mine.map((i) => low[i]);
  const caps = mine.map((i) => high[i]);
  const total = (list) => list.reduce((a, b) => a + b, 0n);
  const filled = total(caps);
  const target = N - ready.lows[box.n] + total(floors);
  if (filled < target) return { spread: spread(box, mine, N - filled) };
  const state = new Uint8Array(mine.length);
  const [top, bottom] = clip(c, floors, caps, target, state);
  let missing = target;
  const broken = [];
  const own = c.map((k, j) => {
    const w = state[j] === FREE ? (top * k) / bottom : state[j] ? caps[j] : floors[j];
    if (state[j] === FREE && w * bottom !== top * k) broken.push(j);
    missing -= w;
    return w;
  });
  for (const j of broken.slice(0, Number(missing))) own[j]++;
  return { own };
}

const positions = (counts) => [...counts.keys()].sort((a, b) => a - b);

/** All whole weights of a release: its exact law over 2^62. */
export function boxWeights(box, counts) {
  const mine = positions(counts);
  const solved = solve(box, mine, counts);
  if (solved.spread) return spreadWeights(box, solved.spread);
  const weights = [...box.low];
  mine.forEach((i, j) => (weights[i] = solved.own[j]));
  return weights;
}

/** The category of a word, without computing the weights of the others. */
export function drawBox(box, counts, [word]) {
  const mine = positions(counts);
  const solved = solve(box, mine, counts);
  if (solved.spread) return spreadDraw(box, solved.spread, word);
  const { low, ready: { lows } } = box;
  let from = 0;
  let shift = 0n; // how much more than their floors the user's positions so far have
  for (let j = 0; j < mine.length; j++) {
    const i = mine[j];
    if (word < lows[i] + shift) break;
    if (word < lows[i] + shift + solved.own[j]) return i;
    shift += solved.own[j] - low[i];
    from = i + 1;
  }
  return first(from, box.n - 1, (i) => word < lows[i + 1] + shift);
}

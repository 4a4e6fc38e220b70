/**
 * The nearest law of a box for a geometry; docs/format.md has the rule.
 *
 * The pieces below a node are two pairing heaps, one on each side of its cut, the piece next to the cut on top. A piece is
 * an index into parallel arrays, from 1. Below the top a slope is relative to the piece above, so that shifting the top
 * shifts them all. `over` is by how many units more than there should be are before the cut.
 */
import { running } from "./box.js";
import { N, sum } from "./numbers.js";
import { need } from "./refuse.js";

/** What a user has of every category, in units: the differences of ⌊E·N/K⌋, E being running sums. */
export function targetsOf({ mine, counts }, n) {
  const targets = Array(n).fill(0n);
  const ends = running(counts).map((end, j, all) => (end << 62n) / all[mine.length]);
  mine.forEach((i, j) => (targets[i] = ends[j + 1] - ends[j]));
  return targets;
}

/** The law with low ≤ x ≤ high that is nearest to the targets. Outside its box nothing is released. */
export function nearestLaw(targets, low, high, { parents, lengths }) {
  const n = low.length;
  const root = parents.length;
  const size = n + root + 2; // two pieces for each category, and one more by each cut
  const slope = new Float64Array(size);
  const rank = new Int32Array(size); // among equal slopes: the category, and n more for what is beyond
  const child = new Int32Array(size);
  const next = new Int32Array(size);
  const units = [0n];
  const tops = [new Int32Array(root + 1), new Int32Array(root + 1)]; // before the cut, and behind it
  const over = Array(root + 1).fill(0n);

  const isLess = (a, b) => slope[a] < slope[b] || (slope[a] === slope[b] && rank[a] < rank[b]);
  const meld = (side, a, b) => {
    if (!a || !b) return a || b;
    if (isLess(a, b) === !side) [a, b] = [b, a];
    slope[b] -= slope[a];
    next[b] = child[a];
    child[a] = b;
    return a;
  };
  const put = (side, v, piece) => {
    tops[side][v] = meld(side, tops[side][v], piece);
  };
  const take = (side, v) => {
    const top = tops[side][v];
    let pairs = 0;
    for (let one = child[top]; one; ) {
      const other = next[one];
      const rest = other && next[other];
      slope[one] += slope[top];
      if (other) slope[other] += slope[top];
      one = meld(side, one, other);
      next[one] = pairs;
      pairs = one;
      one = rest;
    }
    tops[side][v] = child[top] = 0;
    while (pairs) {
      const one = pairs;
      pairs = next[one];
      put(side, v, one);
    }
    return top;
  };
  const make = (number, count, height) => {
    const piece = units.push(count) - 1;
    rank[piece] = number;
    slope[piece] = height;
    return piece;
  };
  const cut = (v) => {
    while (tops[0][v] && tops[1][v] && isLess(tops[1][v], tops[0][v])) {
      const [a, b] = [take(0, v), take(1, v)]; // of different children, each on the wrong side
      over[v] += units[b] - units[a];
      put(1, v, a);
      put(0, v, b);
    }
    const side = over[v] < 0n ? 1 : 0;
    let left = side ? -over[v] : over[v];
    while (left && tops[side][v]) {
      let piece = tops[side][v];
      if (units[piece] > left) {
        units[piece] -= left;
        piece = make(rank[piece], left, slope[piece]);
      } else take(side, v);
      left -= units[piece];
      put(1 - side, v, piece);
    }
    over[v] = side ? -left : left;
  };

  targets.forEach((target, i) => {
    const own = target < low[i] ? low[i] : target > high[i] ? high[i] : target;
    if (own !== target) over[parents[i]] += own - target;
    if (own > low[i]) put(0, parents[i], make(i, own - low[i], -lengths[i]));
    if (own < high[i]) put(1, parents[i], make(n + i, high[i] - own, lengths[i]));
  });
  for (let v = n; v < root; v++) {
    const parent = parents[v];
    if (lengths[v]) {
      cut(v);
      slope[tops[0][v]] -= lengths[v];
      slope[tops[1][v]] += lengths[v];
    }
    over[parent] += over[v];
    put(0, parent, tops[0][v]);
    put(1, parent, tops[1][v]);
  }
  cut(root);

  const law = [...low];
  const found = [tops[0][root]];
  while (found.length) {
    const piece = found.pop();
    law[rank[piece] % n] += units[piece]; // number 0 has none
    for (let one = child[piece]; one; one = next[one]) found.push(one);
  }
  need(law.every((one, i) => low[i] <= one && one <= high[i]) && sum(law) === N, "certificate", "a law left its box");
  return law;
}

/** The law of a user of a mechanism. */
export const nearestOf = (parts, user) =>
  nearestLaw(user.mine.length ? targetsOf(user, parts.n) : parts.ready.targets, parts.low, parts.high, parts);

import { need } from "./refuse.js";

/** A user: positions, ascending, and how often each occurs. */
const user = (counts) => {
  const mine = [...counts.keys()].sort((a, b) => a - b);
  return { mine, counts: mine.map((i) => BigInt(counts.get(i))) };
};

/** From a list of names. Messages never say which name is wrong. */
export function fromRecords(ready, records) {
  need(Array.isArray(records), "user", "records are not a list");
  const seen = new Map();
  for (const name of records) seen.set(name, (seen.get(name) || 0) + 1);
  return fromCounts(ready, seen);
}

/** From a Map of name to count. */
export function fromCounts({ position }, map) {
  need(map instanceof Map, "user", "counts are not a Map");
  const counts = new Map();
  let total = 0;
  let unknown = 0;
  for (const [name, count] of map) {
    need(Number.isSafeInteger(count) && count >= 0, "user", "counts");
    total += count;
    if (!position.has(name)) unknown++;
    else if (count) counts.set(position.get(name), count);
  }
  need(!unknown, "user", unknown + " unknown categories");
  need(total > 0 && total < 2 ** 53, "user", "no records, or too many");
  return user(counts);
}

/** From a distribution in doubles, one for each category: ⌊(p/s)·2^61⌋. */
export function fromShares({ n }, p) {
  need((Array.isArray(p) || ArrayBuffer.isView(p)) && p.length === n, "user", "shares");
  let total = 0;
  for (const one of p) {
    need(typeof one === "number" && one >= 0, "user", "shares");
    total += one;
  }
  need(Math.abs(total - 1) <= (p instanceof Float32Array ? 1e-5 : 1e-9), "user", "shares do not add up to 1");
  const counts = new Map();
  p.forEach((one, i) => (one = Math.floor((one / total) * 2 ** 61)) && counts.set(i, one));
  return user(counts);
}

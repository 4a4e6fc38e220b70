import { need } from "./refuse.js";

/** Counts of positions, from pairs of a name and a whole number. Messages never say which name. */
function counted(position, pairs) {
  const counts = new Map();
  let total = 0;
  let unknown = 0;
  for (const [name, count] of pairs) {
    need(Number.isSafeInteger(count) && count >= 0, "user", "a count is not a whole number from 0");
    total += count;
    need(total < 2 ** 53, "user", "too many records");
    const i = position.get(name);
    if (i === undefined) unknown++;
    else if (count) counts.set(i, (counts.get(i) || 0n) + BigInt(count));
  }
  need(!unknown, "user", unknown + " records are not among the categories");
  need(total, "user", "there is no record");
  return counts;
}

/** From a list of names. */
export function fromRecords({ position }, records) {
  need(Array.isArray(records), "user", "records must be a list");
  const seen = new Map();
  for (const name of records) seen.set(name, (seen.get(name) || 0) + 1);
  return counted(position, seen);
}

/** From a Map of name to count. */
export function fromCounts({ position }, map) {
  need(map instanceof Map, "user", "counts must be a Map");
  return counted(position, map);
}

/** From a distribution in doubles, one for each category: ⌊(p/s)·2^61⌋. */
export function fromShares({ n }, p) {
  need((Array.isArray(p) || ArrayBuffer.isView(p)) && p.length === n, "user", "not one share for each category");
  let total = 0;
  for (const one of p) {
    need(typeof one === "number" && one >= 0 && one < Infinity, "user", "a share is not a number from 0");
    total += one;
  }
  need(Math.abs(total - 1) <= (p instanceof Float32Array ? 1e-5 : 1e-9), "user", "shares do not add up to 1");
  const counts = new Map();
  p.forEach((one, i) => (one = BigInt(Math.floor((one / total) * 2 ** 61))) && counts.set(i, one));
  return counts;
}

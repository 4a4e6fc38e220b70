import { need } from "./refuse.js";

/** A user: positions, ascending, and how often each occurs. Without any, the user is released as the public. */
const user = (counts) => {
  const mine = [...counts.keys()].sort((a, b) => a - b);
  return { mine, counts: mine.map((i) => BigInt(counts.get(i))) };
};

/** Whether these are a vector in the place of records: nothing but fractions, or one number for each category. */
const isVector = ({ n, names }, records) => {
  let integers = 0;
  let fractions = 0;
  for (const one of records) {
    if (typeof one !== "number") return false;
    if (Number.isInteger(one)) integers++;
    else if (!Number.isNaN(one)) fractions++; // NaN is a missing value
  }
  const each = records.length === n && n > 1;
  return (fractions > 0 && (each || !integers)) || (each && integers > 0 && typeof names[0] === "string");
};

/** From a list of names. Messages never say which name is wrong. */
export function fromRecords(ready, records, options) {
  need(Array.isArray(records), "user", "records are not a list");
  need(!isVector(ready, records), "user", "records are numbers that name no category: pass a distribution to releaseShares");
  const seen = new Map();
  for (const name of records) seen.set(name, (seen.get(name) || 0) + 1);
  return fromCounts(ready, seen, options);
}

/** From a Map of name to count. Unknown names count for nothing, unless `unknown` is "error". */
export function fromCounts({ position }, map, options) {
  const { unknown = "prior", ...rest } = Object(options);
  const strict = unknown === "error";
  need((strict || unknown === "prior") && !Object.keys(rest).length, "call", "unknown is prior or error");
  need(map instanceof Map, "user", "counts are not a Map");
  const counts = new Map();
  let total = 0;
  let others = 0;
  for (const [name, count] of map) {
    need(Number.isSafeInteger(count) && count >= 0, "user", "counts");
    if (!position.has(name)) others++;
    else if (count) {
      total += count;
      counts.set(position.get(name), count);
    }
  }
  need(!strict || (!others && total), "user", others + " unknown categories, or no record");
  need(total < 2 ** 53, "user", "the sum of the counts");
  return user(counts);
}

/** From a distribution in doubles, one for each category: ⌊(p/s)·2^61⌋. All zeros are a user without records. */
export function fromShares({ n }, p) {
  need((Array.isArray(p) || ArrayBuffer.isView(p)) && p.length === n, "user", "shares");
  let total = 0;
  for (const one of p) {
    need(typeof one === "number" && one >= 0, "user", "shares");
    total += one;
  }
  need(total === 0 || Math.abs(total - 1) <= (p instanceof Float32Array ? 1e-5 : 1e-9), "user", "shares do not add up to 1");
  const counts = new Map();
  p.forEach((one, i) => (one = Math.floor((one / total) * 2 ** 61)) && counts.set(i, one));
  return user(counts);
}

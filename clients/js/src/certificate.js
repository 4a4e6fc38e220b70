import { N, ceil, fraction, ratio, sum, whole } from "./numbers.js";
import { need } from "./refuse.js";
import { sha256 } from "./sha256.js";
import { canonical } from "./text.js";

const HEAD = "format version bits kind sampler options categories epsilon ratio keeps_prior prior_digest digest".split(" ");
const KINDS = new Map([
  ["box", ["prior", "low"]],
  ["kernel", ["order", "prior", "low", "own"]],
  ["response", ["kept", "own", "other", "prior"]],
]);

/** Printable is the space, and whatever Unicode calls neither control, format, private, unassigned nor separator. */
export const isLabel = (text) => typeof text === "string" && /^(?:[^\p{C}\p{Z}]| ){1,100}$/u.test(text);
const isDigest = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
const least = (list) => list.reduce((a, b) => (b < a ? b : a));
const most = (list) => list.reduce((a, b) => (b > a ? b : a));

export const onlyKeys = (plain, keys) => {
  for (const key of keys) need(plain.has(key), "fields", "a key is missing: " + key);
  need(plain.size === keys.length, "fields", "a key is unknown");
};
export const signed = (plain) =>
  need(plain.get("digest") === sha256(canonical(plain, "digest")), "digest", "the digest is not that of the content");

const places = (list, n) => {
  need(Array.isArray(list) && list.length, "value", "not a list of places");
  for (const i of list) need(typeof i === "number" && i >= 0 && i < n, "value", "not a place");
  need(new Set(list).size === list.length, "value", "a place twice");
  return list;
};
const wholes = (list, n) => {
  need(Array.isArray(list) && list.length === n, "value", "not one weight for each category");
  return list.map(whole);
};
const certain = (condition) => need(condition, "certificate", "the weights do not certify epsilon");

/** Each function checks the certificate of its kind and returns whether the prior is kept. */
const CERTIFY = {
  box({ low, prior, high }, up, down) {
    certain(up >= down && low.every((one) => one >= 1n));
    certain(sum(low) <= N && sum(high) >= N);
    return prior.every((one, i) => low[i] <= one && one <= high[i]);
  },

  kernel({ low, prior, own }, up, down) {
    const last = low.length - 1;
    let rest = N; // N − Σ low before j
    let behind = N; // Σ prior from j on
    let small; // the least ρ = R/S so far, as [R, S]
    let large;
    own.forEach((mine, j) => {
      certain(low[j] >= 1n && (j === last || prior[j] <= prior[j + 1]));
      let smallest = mine;
      let largest = mine;
      const also = (one, other) => {
        if (one < smallest) smallest = one;
        if (other > largest) largest = other;
      };
      if (j < last) also(low[j], low[j]);
      if (j) also((small[0] * prior[j]) / small[1] - 1n, ceil(large[0] * prior[j], large[1]) + 1n);
      certain(smallest >= 1n && largest * down <= up * smallest);
      const left = rest - mine;
      certain(j < last ? left >= 0n : left === 0n);
      rest -= low[j];
      behind -= prior[j];
      if (!small || left * small[1] < small[0] * behind) small = [left, behind];
      if (!large || left * large[1] > large[0] * behind) large = [left, behind];
    });
    return true;
  },

  response({ kept, own, other, prior }, up, down) {
    const k = kept.length;
    certain(own + BigInt(k - 1) * other === N && own >= 1n);
    if (k > 1) certain(other >= 1n && own * down <= up * other && other * down <= up * own);
    else certain(up >= down);
    return k === prior.length && most(prior) - least(prior) <= 1n;
  },
};

/** Check a parsed mechanism file in full; what is needed to release from it. */
export function certify(plain) {
  need(plain instanceof Map, "format", "not a mechanism file");
  const get = (key) => plain.get(key);
  need(get("format") === "sottovoce-mechanism", "format", "not a mechanism file");
  need(get("version") === 1 && get("bits") === 62 && KINDS.has(get("kind")), "format", "an unknown version or kind");
  const kind = get("kind");
  const fromUsers = plain.has("prior_from_users");
  onlyKeys(plain, [...HEAD, ...KINDS.get(kind), ...(fromUsers ? ["prior_from_users"] : [])]);

  need(isLabel(get("sampler")), "value", "sampler is not a label");
  const options = get("options");
  need(options instanceof Map && [...options].flat().every(isLabel), "value", "options are not labels");
  need(typeof get("keeps_prior") === "boolean", "value", "keeps_prior is not true or false");
  need(!fromUsers || get("prior_from_users") === true, "value", "prior_from_users is not true");
  need(isDigest(get("prior_digest")), "value", "prior_digest is not a digest");
  const names = get("categories");
  need(Array.isArray(names) && names.length, "value", "no categories");
  const type = typeof names[0];
  need(type === "string" || type === "number", "value", "a category is neither text nor number");
  need(names.every((name) => typeof name === type), "value", "texts and numbers mixed");
  const position = new Map(names.map((name, i) => [name, i]));
  const n = names.length;
  need(position.size === n, "value", "a category twice");

  const [a, b] = fraction(get("epsilon"));
  need(a > 0n && a <= 100n * b, "value", "epsilon is not in 0 … 100");
  need(get("ratio") === ratio(a, b), "ratio", "the ratio is not that of epsilon");
  const [up, down] = get("ratio").split("/").map(BigInt);

  const parts = { prior: wholes(get("prior"), n) };
  if (kind === "response") {
    parts.kept = places(get("kept"), n);
    parts.own = whole(get("own"));
    parts.other = whole(get("other"));
  } else {
    parts.low = wholes(get("low"), n);
    if (kind === "box") parts.high = parts.low.map((one) => ((one = (up * one) / down) < N ? one : N));
    else {
      parts.own = wholes(get("own"), n);
      parts.order = places(get("order"), n);
      need(parts.order.length === n, "value", "not every place has a rank");
    }
  }
  certain(parts.prior.every((one) => one >= 1n) && sum(parts.prior) === N);
  const keeps = CERTIFY[kind](parts, up, down);
  need(get("keeps_prior") === keeps, "keeps_prior", "the claim about the prior is wrong");
  signed(plain);
  return { ...parts, kind, n, names, position, epsilon: [a, b], fromUsers, keeps, digest: get("digest"), sampler: get("sampler") };
}

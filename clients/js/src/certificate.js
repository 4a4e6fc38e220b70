import { N, ceil, fraction, ratio, sum, whole } from "./numbers.js";
import { need } from "./refuse.js";
import { canonical, sha256 } from "./text.js";

const HEAD = "format version bits kind sampler options categories epsilon ratio keeps_prior prior_digest digest".split(" ");
const KINDS = new Map([
  ["box", ["prior", "low"]],
  ["nearest", ["prior", "low", "parents", "lengths"]],
  ["kernel", ["order", "prior", "low", "own"]],
  ["response", ["kept", "own", "other", "prior"]],
  ["survey", ["base", "own", "other"]],
]);
/** Which function loads a file of a version. */
const LOADERS = {
  1: "this file makes one release: use load of sottovoce",
  2: "this is a stream: use loadStream of sottovoce/stream",
};

/** Printable is the space, and whatever Unicode calls neither control, format, private, unassigned nor separator. */
export const isLabel = (text) => typeof text === "string" && /^(?:[^\p{C}\p{Z}]| ){1,100}$/u.test(text);
export const isDigest = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
/** Names of categories: all texts or all whole numbers, none twice. */
export const areNames = (list) =>
  Array.isArray(list) && list.length > 0 && new Set(list).size === list.length &&
  (list.every(Number.isSafeInteger) || list.every((name) => typeof name === "string"));
const least = (list) => list.reduce((a, b) => (b < a ? b : a));
const most = (list) => list.reduce((a, b) => (b > a ? b : a));

export const onlyKeys = (plain, keys) => {
  for (const key of keys) need(plain.has(key), "fields", key);
  need(plain.size === keys.length, "fields", "unknown key");
};
/** Refuse a parsed file whose digest is not that of its content. */
export const signed = async (plain) =>
  need(plain.get("digest") === (await sha256(canonical(plain, "digest"))), "digest", "not that of the content");

const places = (list, n) => {
  need(Array.isArray(list) && list.length, "value", "places");
  for (const i of list) need(typeof i === "number" && i >= 0 && i < n, "value", "places");
  need(new Set(list).size === list.length, "value", "places");
  return list;
};
const wholes = (list, n) => {
  need(Array.isArray(list) && list.length === n, "value", "weights");
  return list.map(whole);
};
/** A tree: the n categories first, the root last, every parent behind its children, and at most 2^30 to the root. */
const geometry = (parents, lengths, n) => {
  const isTree = (condition) => need(condition, "value", "geometry");
  isTree(Array.isArray(parents) && Array.isArray(lengths));
  const root = parents.length;
  isTree(root >= n && root <= 2 * n && lengths.length === root && new Set(parents).size === root + 1 - n);
  const far = Array(root + 1).fill(0);
  for (let v = root - 1; v >= 0; v--) {
    const [parent, length] = [parents[v], lengths[v]];
    isTree(Number.isInteger(parent) && parent >= n && parent > v && parent <= root);
    isTree(Number.isInteger(length) && length >= 0);
    far[v] = far[parent] + length;
    isTree(far[v] <= 2 ** 30);
  }
  return { parents, lengths };
};
const certain = (condition) => need(condition, "certificate", "epsilon does not hold");
/** Two weights of a response on k values. */
const response = ({ own, other }, k, up, down) => {
  certain(own + BigInt(k - 1) * other === N && own >= 1n);
  if (k > 1) certain(other >= 1n && own * down <= up * other && other * down <= up * own);
  else certain(up >= down);
};

/** Each function checks the certificate of its kind and returns whether the prior is kept; that of "nearest" is the box's. */
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

  response(parts, up, down) {
    const { kept, prior } = parts;
    response(parts, kept.length, up, down);
    return kept.length === prior.length && most(prior) - least(prior) <= 1n;
  },

  survey(parts, up, down) {
    const { base, reports } = parts;
    certain(base > 1 && base < 65536 && reports < 2 ** 53);
    for (let f = 2; f < 256 && f < base; f++) certain(base % f);
    response(parts, base, up, down);
    return false;
  },
};

/** Check a parsed mechanism file in full, its digest last; what is needed to release from it. `stream`: only streams. */
export async function certify(plain, stream) {
  need(plain instanceof Map, "format", "not a mechanism file");
  const get = (key) => plain.get(key);
  need(get("format") !== "sottovoce-mechanisms", "format", "this is a file of groups: use loadGroups of sottovoce/groups");
  need(get("format") === "sottovoce-mechanism", "format", "not a mechanism file");
  const kind = get("kind");
  const kinds = stream ? stream.kinds : KINDS;
  const keys = kinds.get(kind);
  const version = stream ? 2 : 1;
  need(get("version") !== 3 - version, "format", LOADERS[3 - version]);
  need(get("version") === version && get("bits") === 62 && keys, "format", "this client releases " + [...kinds.keys()].join(", ") + " of 62 bits");
  const provenance = plain.has("provenance") ? get("provenance") : "public";
  onlyKeys(plain, [...HEAD, ...keys, ...(plain.has("provenance") ? ["provenance"] : [])]);

  need(isLabel(get("sampler")), "value", "sampler");
  const options = get("options");
  need(options instanceof Map && [...options].flat().every(isLabel), "value", "options");
  need(typeof get("keeps_prior") === "boolean", "value", "keeps_prior");
  need(!plain.has("provenance") || ["learned", "users"].includes(provenance), "value", "provenance");
  need(isDigest(get("prior_digest")), "value", "prior_digest");
  const names = get("categories");
  need(areNames(names), "value", "categories");
  const position = new Map(names.map((name, i) => [name, i]));
  const n = names.length;

  const [a, b] = fraction(get("epsilon"));
  need(a > 0n && a <= 100n * b, "value", "epsilon");
  need(get("ratio") === ratio(a, b), "ratio", "epsilon");
  const [up, down] = get("ratio").split("/").map(BigInt);

  const asked = kind === "survey";
  let parts = asked ? { base: get("base") } : { prior: wholes(get("prior"), n) };
  if (stream) parts = stream.read(get, parts.prior, up, down);
  else if (asked || kind === "response") {
    if (asked) {
      const { base } = parts;
      need(Number.isSafeInteger(base) && base >= 0, "value", "base");
      let [power, questions] = [1, 0];
      do questions += power;
      while ((power *= base) > 1 && power < n);
      parts.reports = questions * base;
    } else parts.kept = places(get("kept"), n);
    parts.own = whole(get("own"));
    parts.other = whole(get("other"));
  } else {
    parts.low = wholes(get("low"), n);
    if (kind !== "kernel") parts.high = parts.low.map((one) => ((one = (up * one) / down) < N ? one : N));
    else {
      parts.own = wholes(get("own"), n);
      parts.order = places(get("order"), n);
      need(parts.order.length === n, "value", "places");
    }
  }
  if (keys.includes("parents")) {
    Object.assign(parts, geometry(get("parents"), get("lengths"), n));
    certain(stream ? n <= 1 << 14 : BigInt(n) * down <= (up - down) << 20n); // else a law may take too long
  }
  if (!asked) certain(parts.prior.every((one) => one >= 1n) && sum(parts.prior) === (stream ? 1n << 40n : N));
  const keeps = stream ? !parts.persistence : CERTIFY[kind === "nearest" ? "box" : kind](parts, up, down);
  need(get("keeps_prior") === keeps, "keeps_prior", "wrong");
  await signed(plain);
  return { ...parts, kind, n, names, position, epsilon: [a, b], provenance, learned: options.get("learned_epsilon"), keeps, digest: get("digest"), sampler: get("sampler") };
}

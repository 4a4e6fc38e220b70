import { certify, isLabel, onlyKeys, signed } from "./certificate.js";
import { fromCounts, fromRecords, fromShares } from "./counts.js";
import { WORDS, draw, prepare } from "./draw.js";
import { limit } from "./numbers.js";
import { Refused, need } from "./refuse.js";
import { parse } from "./text.js";

export { Refused };

const crypto = globalThis.crypto;
const random = (count) => crypto.getRandomValues(new Uint8Array(count));
const POLICY = ["maxEpsilon", "maxCategories", "digest", "digests", "requirePublicPrior"];

/** A policy as a function that refuses what it does not accept. */
function judge(policy) {
  need(policy && typeof policy === "object", "policy", "a policy is required");
  for (const key of Object.keys(policy)) need(POLICY.includes(key), "policy", "the policy has an unknown key");
  const { maxEpsilon, maxCategories, digest, digests = digest && [digest], requirePublicPrior } = policy;
  const [a, b] = limit(maxEpsilon);
  need(Number.isSafeInteger(maxCategories) && maxCategories > 0, "policy", "maxCategories must be a whole number");
  need(Array.isArray(digests) && !(digest && policy.digests), "policy", "state digest or digests");
  return (named, mechanisms) => {
    need(digest === "any" || digests.includes(named), "policy", "not the expected file: another digest");
    let n = 0;
    for (const one of mechanisms) {
      n += one.n;
      need(one.epsilon[0] * b <= a * one.epsilon[1], "policy", "epsilon is larger than maxEpsilon");
      need(!(requirePublicPrior && one.fromUsers), "policy", "the prior was made from the users it serves");
    }
    need(n <= maxCategories, "policy", "more categories than maxCategories");
    return digest !== "any";
  };
}

/** A mechanism that is checked and can release: a frozen value. */
function mechanism(parts) {
  const ready = prepare(parts);
  const bytes = 8 * WORDS[ready.kind];
  const released = (counts) => ready.names[draw(ready, counts, random(bytes))];
  return Object.freeze({
    digest: ready.digest,
    epsilon: ready.epsilon.join("/"),
    kind: ready.kind,
    sampler: ready.sampler,
    categories: Object.freeze([...ready.names]),
    keepsPrior: ready.keeps,
    priorFromUsers: ready.fromUsers,
    bytes,
    release: (records) => released(fromRecords(ready, records)),
    releaseCounts: (map) => released(fromCounts(ready, map)),
    releaseShares: (p) => released(fromShares(ready, p)),
  });
}

/** Check the bytes of a mechanism file in full and hold it against the policy. */
export function load(bytes, policy) {
  const accept = judge(policy);
  const parts = certify(parse(bytes));
  accept(parts.digest, [parts]);
  return mechanism(parts);
}

/** Check a parsed file of groups; pairs of a name and the parts of its mechanism. */
export function certifyGroups(plain) {
  need(plain instanceof Map && plain.get("format") === "sottovoce-mechanisms", "format", "not a file of groups");
  need(plain.get("version") === 1, "format", "an unknown version");
  onlyKeys(plain, ["format", "version", "by", "groups", "digest"]);
  const by = plain.get("by");
  const groups = plain.get("groups");
  need(isLabel(by), "value", "by is not a label");
  const column = by.normalize("NFKC").trim().toLowerCase();
  need(!["", "user", "item", "weight", "count"].includes(column), "value", "by is not the name of a group's column");
  need(groups instanceof Map && groups.size > 0 && groups.size <= 10000, "value", "not 1 to 10,000 groups");
  const found = [...groups].map(([name, one]) => {
    need(isLabel(name), "value", "the name of a group is not a label");
    return [name, certify(one)];
  });
  signed(plain);
  return found;
}

/** The same for a file of groups. `by` is told only if the policy names this very file. */
export function loadGroups(bytes, policy) {
  const accept = judge(policy);
  const plain = parse(bytes);
  const found = certifyGroups(plain);
  const pinned = accept(plain.get("digest"), found.map(([, parts]) => parts));
  const groups = new Map(found.map(([name, parts]) => [name, mechanism(parts)]));
  return Object.freeze({
    digest: plain.get("digest"),
    by: pinned ? plain.get("by") : null,
    names: Object.freeze([...groups.keys()]),
    get(name) {
      need(groups.has(name), "user", "there is no such group");
      return groups.get(name);
    },
  });
}

/** What is sent to a collector: the id is new, random, and made from nothing else. Send the same report again until it is answered. */
export function report(mechanism, category) {
  need(mechanism.categories.includes(category), "user", "not a category of this mechanism");
  const id = Array.from(random(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return Object.freeze({ mechanism: mechanism.digest, id, category });
}

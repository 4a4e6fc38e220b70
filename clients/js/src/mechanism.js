import { fromCounts, fromRecords, fromShares } from "./counts.js";
import { WORDS, draw, prepare } from "./draw.js";
import { limit } from "./numbers.js";
import { need } from "./refuse.js";

const crypto = globalThis.crypto;
export const random = (count) => crypto.getRandomValues(new Uint8Array(count));
const POLICY = ["maxEpsilon", "maxCategories", "digest", "digests", "requirePublicPrior"];

/** A policy as a function that refuses what it does not accept. */
export function judge(policy) {
  need(policy && typeof policy === "object", "policy", "a policy is required");
  for (const key of Object.keys(policy)) need(POLICY.includes(key), "policy", "unknown key");
  const { maxEpsilon, maxCategories, digest, digests = digest && [digest], requirePublicPrior } = policy;
  const [a, b] = limit(maxEpsilon);
  need(Number.isSafeInteger(maxCategories) && maxCategories > 0, "policy", "maxCategories");
  need(Array.isArray(digests) && !(digest && policy.digests), "policy", "state digest or digests");
  return (named, mechanisms) => {
    need(digest === "any" || digests.includes(named), "policy", "another digest than expected");
    let n = 0;
    for (const one of mechanisms) {
      n += one.n;
      need(one.epsilon[0] * b <= a * one.epsilon[1], "policy", "epsilon above maxEpsilon");
      need(!(requirePublicPrior && one.fromUsers), "policy", "prior from users");
    }
    need(n <= maxCategories, "policy", "categories above maxCategories");
    return digest !== "any";
  };
}

/** A mechanism that is checked and can release: a frozen value. */
export function mechanism(parts) {
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

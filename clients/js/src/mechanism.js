import { areNames, isDigest } from "./certificate.js";
import { fromCounts, fromRecords, fromShares } from "./counts.js";
import { WORDS, draw, prepare } from "./draw.js";
import { limit } from "./numbers.js";
import { need } from "./refuse.js";

const crypto = globalThis.crypto;
export const random = (count) => crypto.getRandomValues(new Uint8Array(count));
const POLICY = ["maxEpsilon", "maxCategories", "digest", "digests", "provenance", "categories", "maxLearnedEpsilon"];

/** Whether a learned prior states an ε up to [a, b]; it is written in the digits of a double. */
function states({ provenance, learned }, [a, b]) {
  if (provenance !== "learned" || !/^\d{1,3}(\.\d{1,25})?(e-\d{1,2})?$/.test(learned)) return false;
  if (Number(learned) === 0) return true;
  const [c, d] = limit(Number(learned));
  return c * b <= a * d;
}

/** A policy as a function that refuses what it does not accept. */
export function judge(policy) {
  need(policy && typeof policy === "object", "policy", "a policy is required");
  for (const key of Object.keys(policy)) need(POLICY.includes(key), "policy", "unknown key");
  const { maxEpsilon, maxCategories, digest, digests = digest && [digest], provenance, categories, maxLearnedEpsilon } = policy;
  const [a, b] = limit(maxEpsilon);
  const learned = maxLearnedEpsilon === undefined ? null : limit(maxLearnedEpsilon);
  need(Number.isSafeInteger(maxCategories) && maxCategories > 0, "policy", "maxCategories");
  need(Array.isArray(digests) && !(digest && policy.digests), "policy", "state digest or digests");
  need(digest === "any" || digests.every(isDigest), "policy", "a digest is not 64 hexadecimal digits (0-9, a-f): give the whole digest of the file");
  need(categories === undefined || areNames(categories), "policy", "categories");
  need([undefined, "public", "users"].includes(provenance), "policy", "provenance");
  return (named, mechanisms) => {
    need(digest === "any" || digests.includes(named), "policy", "the digest of the file is not the expected one");
    let n = 0;
    for (const one of mechanisms) {
      n += one.n;
      need(one.epsilon[0] * b <= a * one.epsilon[1], "policy", "epsilon above maxEpsilon");
      need(provenance !== "public" || one.provenance !== "users", "policy", "prior from users");
      need(!learned || one.provenance === "public" || states(one, learned), "policy", "prior learned above maxLearnedEpsilon, or at an epsilon that is not stated");
      need(!categories || (categories.length === one.n && categories.every((name) => one.position.has(name))), "policy", "categories");
    }
    need(n <= maxCategories, "policy", "categories above maxCategories");
    return digest !== "any";
  };
}

/** A mechanism that is checked and can release: a frozen value. The first release prepares what all need. */
export function mechanism(parts) {
  let ready;
  const bytes = 8 * WORDS[parts.kind];
  const released = (counts) => {
    const found = draw((ready ??= prepare(parts)), counts, random(bytes));
    return parts.reports ? found : parts.names[found];
  };
  return Object.freeze({
    digest: parts.digest,
    epsilon: parts.epsilon.join("/"),
    kind: parts.kind,
    sampler: parts.sampler,
    categories: Object.freeze([...parts.names]),
    keepsPrior: parts.keeps,
    provenance: parts.provenance,
    bytes,
    ...(parts.reports && { reports: parts.reports }),
    release: (records, options) => released(fromRecords(parts, records, options)),
    releaseCounts: (map, options) => released(fromCounts(parts, map, options)),
    releaseShares: (p) => released(fromShares(parts, p)),
  });
}

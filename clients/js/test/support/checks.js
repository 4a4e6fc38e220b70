/** Runs the vectors against a client, given as the address of its folder `src`; works in Node and in a browser. */
import { law } from "./laws.js";

export const FILES = ["canonical", "exponentials", "shares", "draws_box", "draws_nearest", "draws_kernel", "draws_response", "draws_survey", "draws_groups",
  "files_accepted", "files_refused", "blend", "global_minimax", "kernel_clip", "local_minimax", "minimax_kernel",
  "power_caps", "prior_minimax", "randomized_response", "relative_mollifier", "rr_with_prior"];
const PARTS = ["text", "numbers", "certificate", "counts", "box", "nearest", "draw", "core", "certificate_groups", "groups"];

/** All inner functions of a client in one object. */
export async function client(source, stamp = "") {
  const parts = await Promise.all(PARTS.map((name) => import(`${source}/${name}.js${stamp}`)));
  return Object.assign({}, ...parts);
}

const encoder = new TextEncoder();
const hex = (text) => Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
const sameLaw = (found, weights) => found.length === weights.length && found.every((one, i) => String(one) === weights[i]);

/** The bytes of a file of the vectors. */
export function bytesOf({ text, bytes, length }) {
  const given = text === undefined ? hex(bytes) : encoder.encode(text);
  if (!length) return given;
  const padded = new Uint8Array(length).fill(32);
  padded.set(given);
  return padded;
}

const policyOf = ({ max_epsilon = 1e15, max_categories = 1e9, digests, provenance, categories, max_learned_epsilon } = {}) => ({
  maxEpsilon: max_epsilon,
  maxCategories: max_categories,
  ...(digests ? { digests } : { digest: "any" }),
  ...(provenance === undefined ? {} : { provenance }),
  ...(categories === undefined ? {} : { categories }),
  ...(max_learned_epsilon === undefined ? {} : { maxLearnedEpsilon: max_learned_epsilon }),
});

/** null if the file is accepted by `load` or `loadGroups`, otherwise the reason; another error is passed on. */
export async function verdict(sv, bytes, policy, groups = false) {
  try {
    await sv[groups ? "loadGroups" : "load"](bytes, policyOf(policy));
    return null;
  } catch (problem) {
    if (!(problem instanceof sv.Refused)) throw problem;
    return problem.reason;
  }
}

const isGroups = (file) => (file.text || "").includes('"sottovoce-mechanisms"');

/** Counts of a user, empty for the public, or null where the user is refused. */
export function countsOf(sv, ready, user) {
  const options = user.unknown && { unknown: user.unknown };
  try {
    if (user.records) return sv.fromRecords(ready, user.records, options);
    if (user.shares) return sv.fromShares(ready, user.shares);
    return sv.fromCounts(ready, new Map(user.counts), options);
  } catch (problem) {
    if (!(problem instanceof sv.Refused)) throw problem;
    return null;
  }
}

/** Mechanisms by group; the name of the only one is undefined. */
export async function opened(sv, bytes, groups) {
  const plain = sv.parse(bytes, 1e6);
  const found = groups ? await sv.certifyGroups(plain) : [[undefined, await sv.certify(plain)]];
  return new Map(found.map(([name, parts]) => [name, sv.prepare(parts)]));
}

async function* draws(sv, file) {
  const ready = await opened(sv, bytesOf({ text: file.text }), isGroups(file));
  for (const [place, user] of file.users.entries()) {
    const one = ready.get(user.group);
    const size = 8 * sv.WORDS[one.kind];
    if (file.bytes && file.bytes !== size) yield `${file.name}: reads ${size} bytes`;
    const counts = countsOf(sv, one, user);
    if (!counts) {
      yield `${file.name}: user ${place} is refused`;
      continue;
    }
    if (user.weights && !sameLaw(law(sv, one, counts), user.weights)) yield `${file.name}: the law of user ${place}`;
    for (const { bytes, released } of user.draws) {
      const given = hex(bytes);
      if (given.length !== size) yield `${file.name}: ${size} bytes, the vector has ${given.length}`;
      const found = sv.draw(one, counts, given);
      if ((one.reports ? found : one.names[found]) !== released) yield `${file.name}: user ${place}, ${bytes}`;
    }
  }
  for (const [place, user] of (file.refused_users || []).entries())
    if (countsOf(sv, ready.get(user.group), user)) yield `${file.name}: refused user ${place} is accepted`;
}

/** Everything in which a client differs from the vectors; `vectors` holds each file by its name. */
export async function* complaints(sv, vectors) {
  for (const { value, canonical, digest } of vectors.canonical.cases) {
    const found = sv.canonical(sv.parse(encoder.encode(value), 1));
    if (found !== canonical || (await sv.sha256(found)) !== digest) yield `canonical form of ${value.slice(0, 40)}`;
  }
  for (const [epsilon, ratio] of vectors.exponentials.table)
    if (sv.ratio(...sv.fraction(epsilon)) !== ratio) yield `ratio of ${epsilon}`;
  for (const { p, counts } of vectors.shares.cases) {
    const found = countsOf(sv, { n: p.length }, { shares: p });
    const plain = found && found.mine.map((i, j) => [i, String(found.counts[j])]);
    if (JSON.stringify(plain) !== JSON.stringify(counts)) yield `shares ${p}`;
  }
  for (const file of vectors.files_accepted.files) {
    const reason = await verdict(sv, bytesOf(file), file.policy, isGroups(file));
    if (reason !== null) yield `accepted file: ${file.name}: refused, ${reason}`;
    if (isGroups(file) && (await verdict(sv, bytesOf(file), file.policy)) === null) yield `${file.name}: groups taken for one`;
  }
  for (const file of vectors.files_refused.files)
    if ((await verdict(sv, bytesOf(file), file.policy, isGroups(file))) === null) yield `refused file: ${file.name}: accepted`;
  for (const [name, { files, mechanism, cases }] of Object.entries(vectors)) {
    if (name.startsWith("draws_")) for (const file of files) yield* draws(sv, file);
    if (!mechanism) continue;
    const users = cases.map(({ bytes, released, ...user }) => ({ ...user, draws: [{ bytes, released }] }));
    yield* draws(sv, { name, text: JSON.stringify(mechanism), users });
  }
}

/** Everything that an async generator gives. */
export async function all(generator) {
  const found = [];
  for await (const one of generator) found.push(one);
  return found;
}

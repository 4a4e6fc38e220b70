/** Files made for the tests, signed without the client; names and labels of any text, keys in ASCII. */
import { createHash } from "node:crypto";
import { ratio } from "../../src/numbers.js";

const N = 1n << 62n;
const escaped = (text) => text.replace(/[^ -~]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
const canonical = (value) => {
  if (Array.isArray(value)) return "[" + value.map(canonical).join() + "]";
  if (typeof value !== "object") return escaped(JSON.stringify(value));
  return "{" + Object.keys(value).sort().map((key) => canonical(key) + ":" + canonical(value[key])).join() + "}";
};
const signed = (plain) => ({ ...plain, digest: createHash("sha256").update(canonical(plain)).digest("hex") });

/** A box that releases its prior, which is even, whatever the records are. */
export function box(categories, { epsilon = "1/1", options = {}, sampler = "blend" } = {}) {
  const n = BigInt(categories.length);
  const prior = categories.map((_, i) => String(N / n + (i ? 0n : N % n)));
  const [a, b] = epsilon.split("/").map(BigInt);
  return signed({ format: "sottovoce-mechanism", version: 1, bits: 62, kind: "box", sampler, options, categories, epsilon,
    ratio: ratio(a, b), keeps_prior: true, prior_digest: "0".repeat(64), prior, low: prior });
}

/** A file of groups; `mechanisms` is a list of pairs. */
export const groups = (mechanisms) =>
  signed({ format: "sottovoce-mechanisms", version: 1, by: "age", groups: Object.fromEntries(mechanisms) });

export const bytes = (plain) => new TextEncoder().encode(typeof plain === "string" ? plain : JSON.stringify(plain));

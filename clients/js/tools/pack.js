/**
 * Writes dist/sottovoce.js: the core in one file, without comments and with short names, for pages without a bundler.
 * It knows only the JavaScript of src/: semicolons everywhere, no template texts. The tests run the vectors on its result.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const HOME = new URL("../", import.meta.url);
/** Each file after those that it imports. */
export const CORE = ["refuse", "numbers", "sha256", "text", "certificate", "counts", "box", "draw", "core"];
const TOKEN =
  /\s+|\/\*[^]*?\*\/|\/\/.*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<=[(=,!]\s*|&& |\? )\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+\/[a-z]*|[\p{L}_$][\w$]*|\d\w*(?:\.\d+)?|[^]/gu;
const RESERVED = `async await break case catch class const constructor continue default delete do else export extends false
  finally for from function get if import in instanceof let new null of return set static super switch this throw true try
  typeof undefined void while yield NaN Infinity globalThis`.split(/\s+/);
/** Names that others see, or that stand in texts. */
const PUBLIC = `load loadGroups report Refused reason digest epsilon kind sampler categories keepsPrior priorFromUsers bytes
  release releaseCounts releaseShares by names mechanism id category maxEpsilon maxCategories digests requirePublicPrior
  fatal ignoreBOM crypto getRandomValues box kernel response`.split(/\s+/);

/** Every name that the language itself gives a meaning. */
function known() {
  const found = new Set([...RESERVED, ...PUBLIC]);
  const add = (owner) => Object.getOwnPropertyNames(owner).forEach((name) => found.add(name));
  add(globalThis);
  for (const one of [Array, BigInt, Map, Set, Math, Number, Object, RegExp, String, Error, JSON, DataView, Float64Array,
    Object.getPrototypeOf(Float64Array), TextDecoder, TextEncoder, ArrayBuffer]) {
    add(one);
    if (one.prototype) add(one.prototype);
  }
  add(/x/.exec("x"));
  add(/x/);
  return found;
}

/** The core as one module with short names. */
export function pack() {
  const tops = new Map();
  const tokens = [];
  for (const name of CORE) {
    const text = readFileSync(new URL(`src/${name}.js`, HOME), "utf8");
    for (const [, top] of text.matchAll(/^(?:export )?(?:const|function|class) (\w+)/gm)) {
      if (tops.has(top)) throw new Error(`${top} is in ${tops.get(top)} and in ${name}`);
      tops.set(top, name);
    }
    const body = text.replace(/^import .*\n/gm, "").replace(/^export \{.*\n/gm, "").replace(/^export /gm, "");
    tokens.push(...body.match(TOKEN).filter((token) => !/^(\s|\/\*|\/\/)/.test(token)));
  }
  const keep = known();
  const isName = (token) => /^[\p{L}_$]/u.test(token);
  const often = new Map();
  for (const token of tokens) if (isName(token) && !keep.has(token)) often.set(token, (often.get(token) || 0) + 1);
  const letters = [..."etnsaoirlcdupmhgfbyvkwxqzjETNSAOIRLCDUPMHGFBYVKWXQZJ"];
  const short = [...letters, ...letters.flatMap((a) => letters.slice(0, 9).map((b) => a + b))].filter((one) => !keep.has(one));
  const renamed = new Map([...often].sort((a, b) => b[1] - a[1]).map(([name], i) => [name, short[i]]));
  let text = "";
  for (let token of tokens) {
    token = renamed.get(token) || token;
    const last = text.at(-1) || "";
    if ((/[\w$]/.test(last) && /[\w$]/.test(token[0])) || (/[+-]/.test(last) && last === token[0] && !/[+-]{2}$/.test(text + token))) text += " ";
    if (token === "}" && last === ";") text = text.slice(0, -1);
    text += token;
  }
  const exported = ["load", "loadGroups", "report", "Refused"].map((name) => (renamed.has(name) ? `${renamed.get(name)} as ${name}` : name));
  return `${text}export{${exported}};\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  mkdirSync(new URL("dist/", HOME), { recursive: true });
  writeFileSync(new URL("dist/sottovoce.js", HOME), "// sottovoce, Apache-2.0; made by tools/pack.js from src/\n" + pack());
}

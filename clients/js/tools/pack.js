/**
 * Writes dist/sottovoce.js: the core in one file, without comments and with short names, for pages without a bundler.
 * It knows only the JavaScript of src/: semicolons everywhere, no template texts. The tests run the vectors on its result.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const HOME = new URL("../", import.meta.url);
/** Each file after those that it imports. */
export const CORE = ["refuse", "numbers", "text", "certificate", "counts", "box", "nearest", "draw", "mechanism", "core"];
const TOKEN =
  /\s+|\/\*[^]*?\*\/|\/\/.*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<=[(=,!]\s*|&& |\? )\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+\/[a-z]*|[\p{L}_$][\w$]*|\d\w*(?:\.\d+)?|[^]/gu;
const RESERVED = `async await break case catch class const constructor continue default delete do else export extends false
  finally for from function get if import in instanceof let new null of return set static super switch this throw true try
  typeof undefined void while yield NaN Infinity globalThis`.split(/\s+/);
/** Names that others see, or that stand in texts. */
const PUBLIC = `subtle load report Refused reason digest epsilon kind sampler categories keepsPrior bytes
  release releaseCounts releaseShares by names mechanism id category maxEpsilon maxCategories digests provenance
  group unknown fatal ignoreBOM crypto getRandomValues box nearest kernel response survey reports`.split(/\s+/);

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

const LETTERS = [..."etnsaoirlcdupmhgfbyvkwxqzjETNSAOIRLCDUPMHGFBYVKWXQZJ"];
const PAIRS = LETTERS.flatMap((a) => LETTERS.slice(0, 9).map((b) => a + b));
const isName = (token) => /^[\p{L}_$]/u.test(token);

/** The tokens of each file, without comments, imports and the word export; no name of the top may occur in two files. */
function read() {
  const tops = new Set();
  const files = CORE.map((name) => {
    const text = readFileSync(new URL(`src/${name}.js`, HOME), "utf8");
    for (const [, top] of text.matchAll(/^(?:export )?(?:const|function|class) (\w+)/gm)) {
      if (tops.has(top)) throw new Error(`${top} is in two files`);
      tops.add(top);
    }
    const body = text.replace(/^import .*\n/gm, "").replace(/^export \{.*\n/gm, "").replace(/^export /gm, "");
    return body.match(TOKEN).filter((token) => !/^(\s|\/\*|\/\/)/.test(token));
  });
  return [tops, files];
}

/** Names by how often they occur, the most frequent first. */
function frequent(tokens) {
  const often = new Map();
  for (const token of tokens) often.set(token, (often.get(token) || 0) + 1);
  return [...often.keys()].sort((a, b) => often.get(b) - often.get(a));
}

/** The core as one module with short names. A name that only one file knows shares its letter with those of other files. */
export function pack() {
  const [tops, files] = read();
  const keep = known();
  const isFree = (token) => isName(token) && !keep.has(token);
  const shared = (name) => tops.has(name) || files.filter((tokens) => tokens.includes(name)).length > 1;
  const letters = LETTERS.filter((one) => !keep.has(one));
  const pairs = PAIRS.filter((one) => !keep.has(one));
  const common = [...letters.splice(0, 20), ...pairs.splice(0, 150)];
  const renamed = new Map(frequent(files.flat().filter(isFree)).filter(shared).map((name, i) => [name, common[i]]));
  let text = "";
  for (const tokens of files) {
    const local = frequent(tokens.filter(isFree)).filter((name) => !renamed.has(name));
    const own = new Map(local.map((name, i) => [name, [...letters, ...pairs][i]]));
    for (let token of tokens) {
      if (token === "const") token = "let"; // shorter; src/ itself has const
      token = renamed.get(token) || own.get(token) || token;
      const last = text.at(-1) || "";
      if (/[\w$]/.test(last) && /[\w$]/.test(token[0])) text += " ";
      if (/[}\])]/.test(token) && /[;,]/.test(last) && !/for\([^)]*;$/.test(text)) text = text.slice(0, -1);
      text += token;
    }
  }
  const exported = ["load", "report", "Refused"].map((name) => (renamed.has(name) ? `${renamed.get(name)} as ${name}` : name));
  return `${text}export{${exported}};\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  mkdirSync(new URL("dist/", HOME), { recursive: true });
  writeFileSync(new URL("dist/sottovoce.js", HOME), "// sottovoce, Apache-2.0; made by tools/pack.js from src/\n" + pack());
}

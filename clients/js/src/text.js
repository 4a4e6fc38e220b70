import { need } from "./refuse.js";

const DEEP = 4;
const END = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)/y;
const LITERAL = /true|false|null/y;
const LITERALS = { true: true, false: false, null: null };
const encoder = new TextEncoder();

/**
 * Read bytes as strict JSON. An object becomes a Map, so that no name is special.
 * Beyond JSON.parse it refuses a key twice, 1.0, 1e3, -0, half a surrogate pair, deep nesting and too long a file.
 */
export function parse(bytes, categories) {
  need(bytes?.byteLength >= 0, "call", "bytes must be a Uint8Array, as new Uint8Array(await response.arrayBuffer()) or readFile(path) of node:fs/promises returns it, not text or parsed JSON");
  need(bytes.byteLength <= 65536 + 1024 * categories, "text", "length");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    need(false, "text", "UTF-8");
  }
  let at = 0;

  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    need(found, "text", "JSON");
    at = pattern.lastIndex;
    return found[0];
  };
  /** Skip blanks; is the next character this one? Then skip it too. */
  const next = (character) => {
    let code;
    while ((code = text.charCodeAt(at)) === 32 || code === 10 || code === 13 || code === 9) at++;
    return text[at] === character && ++at > 0;
  };
  const must = (character) => need(next(character), "text", "JSON");

  const string = () => {
    const start = at;
    let plain = true;
    for (let code; (code = text.charCodeAt(at)) !== 34; at++) {
      need(code > 31, "text", "JSON"); // NaN behind the end fails too
      if (code === 92) {
        plain = false;
        at++;
      }
    }
    at++;
    if (plain) return text.slice(start, at - 1);
    let value;
    try {
      value = JSON.parse(text.slice(start - 1, at));
    } catch {
      need(false, "text", "JSON");
    }
    need(!/\p{Cs}/u.test(value), "value", "surrogate");
    return value;
  };

  const value = (depth) => {
    const isObject = next("{");
    if (isObject || next("[")) {
      need(depth < DEEP, "text", "depth");
      const found = isObject ? new Map() : [];
      const close = isObject ? "}" : "]";
      if (!next(close)) {
        do {
          if (isObject) {
            must('"');
            const name = string();
            need(!found.has(name), "text", "key twice");
            must(":");
            found.set(name, value(depth + 1));
          } else found.push(value(depth + 1));
        } while (next(","));
        must(close);
      }
      return found;
    }
    if (next('"')) return string();
    const first = text.charCodeAt(at);
    if (first !== 45 && !(first > 47 && first < 58)) return LITERALS[take(LITERAL)];
    const digits = take(NUMBER);
    need(digits !== "-0", "text", "number");
    return +digits;
  };

  const found = value(0);
  take(END);
  need(at === text.length, "text", "JSON");
  return found;
}

const SHORT = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r" };
const escape = (unit) => SHORT[unit] || "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0");
const quote = (text) => '"' + (/^[ !#-[\]-~]*$/.test(text) ? text : text.replace(/[^ !#-[\]-~]/g, escape)) + '"';
/** UTF-8 sorts like code points; UTF-16 does not. */
const sortable = (key) => String.fromCharCode(...encoder.encode(key));
const byCodePoint = ([a], [b]) => (sortable(a) < sortable(b) ? -1 : 1);

/** SHA-256 of ASCII text in hexadecimal. A browser has it on secure origins only (https, localhost). */
export async function sha256(text) {
  const { subtle } = globalThis.crypto;
  need(subtle, "digest", "no crypto.subtle: serve this page over https");
  return hex(new Uint8Array(await subtle.digest("SHA-256", encoder.encode(text))));
}
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The canonical form of docs/format.md, over which the digest is taken; `without` leaves out a key of the top. */
export function canonical(value, without) {
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return "[" + value.map((one) => canonical(one)).join() + "]";
  if (!(value instanceof Map)) return String(value);
  const members = [...value].filter(([key]) => key !== without).sort(byCodePoint);
  return "{" + members.map(([key, one]) => quote(key) + ":" + canonical(one)).join() + "}";
}

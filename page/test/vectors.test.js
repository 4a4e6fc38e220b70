/** The numbers of the page against those of the library, in tests/vectors/page_samplers.json. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { answer } from "./support/answers.js";

const CASES = JSON.parse(readFileSync(new URL("../../tests/vectors/page_samplers.json", import.meta.url), "utf8"));
/** What has to agree in every bit. */
const EXACT = /^(q|fitted(?!.*promise)|geometry|crowds|stream)\b/;

/** Where two answers differ, as paths: exactly, or by more than 1e-12 of what is expected and, below 1, of 1. */
function differences(expected, found, path = "") {
  if (typeof expected === "number" && typeof found === "number" && !EXACT.test(path)) {
    const scale = /floor/.test(path) ? Math.abs(expected) : Math.max(Math.abs(expected), 1);
    return Math.abs(expected - found) <= 1e-12 * scale ? [] : [`${path}: ${found}, not ${expected}`];
  }
  if (expected === null || typeof expected !== "object") return expected === found ? [] : [`${path}: ${found}, not ${expected}`];
  if (found === null || typeof found !== "object") return [`${path}: ${found}`];
  const keys = new Set([...Object.keys(expected), ...Object.keys(found)]);
  return [...keys].flatMap((key) => differences(expected[key], found[key], path ? `${path}.${key}` : key));
}

test("the file holds cases", () => assert.ok(CASES.length >= 12));

for (const { question, answer: expected } of CASES)
  test(`${question.weights.length} categories, epsilon ${question.epsilon}: ${question.name}`, () => {
    assert.deepEqual(differences(expected, JSON.parse(JSON.stringify(answer(question)))), []);
  });

/** Answers for the questions of tests/release/test_javascript.py: node answer.js questions.json answers.json */
import { readFileSync, writeFileSync } from "node:fs";
import { client, countsOf, opened, verdict } from "./checks.js";
import { law } from "./laws.js";

const [, , asked, answered] = process.argv;
const { draws, mutants } = JSON.parse(readFileSync(asked, "utf8"));
const sv = await client(new URL("../../src", import.meta.url).href);
const POLICY = { maxEpsilon: 100, maxCategories: 1e9, digest: "any" };

let tape = null;
let read = 0;
crypto.getRandomValues = (array) => {
  read += array.length;
  array.set(tape);
  return array;
};

/** Category and bytes read, through the public function; the law through the inner ones. */
async function answer({ text, users }) {
  const bytes = new TextEncoder().encode(text);
  const mechanism = await sv.load(bytes, POLICY);
  const ready = (await opened(sv, bytes, false)).get(undefined);
  return users.map(({ records, words, wants }) => ({
    law: wants ? law(sv, ready, countsOf(sv, ready, { records })).map(String) : null,
    released: words.map((word) => {
      tape = Buffer.from(word, "hex");
      read = 0;
      return [mechanism.release(records), read];
    }),
  }));
}

/** The digest of a file that is accepted, or null. */
async function judged({ data, policy }) {
  const bytes = Buffer.from(data, "base64");
  for (const groups of [false, true])
    if ((await verdict(sv, bytes, policy, groups)) === null) return sv.parse(bytes, 1e9).get("digest");
  return null;
}

const found = { draws: [], mutants: [] };
for (const one of draws) found.draws.push(await answer(one));
for (const one of mutants) found.mutants.push(await judged(one));
writeFileSync(answered, JSON.stringify(found));

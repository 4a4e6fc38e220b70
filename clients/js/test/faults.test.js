/** The vectors have teeth: every fault planted in this client is caught by them. */
import assert from "node:assert/strict";
import test from "node:test";
import { complaints } from "./support/checks.js";
import { planted, readVectors } from "./support/files.js";
import { FAULTS } from "./support/planted.js";

const vectors = readVectors();

/** The first complaint about a client, or how it fails. */
async function caught(sv) {
  try {
    for await (const one of complaints(sv, vectors)) return one;
    return null;
  } catch (problem) {
    return `it failed: ${problem.message}`;
  }
}

for (const [name, fault] of Object.entries(FAULTS))
  test(`caught: ${name}`, async () => {
    const found = await planted(fault, caught);
    assert.notEqual(found, null);
    assert.doesNotMatch(found, /is not defined|Unexpected token/); // a fault, not a slip of ours
  });

test("there are a hundred faults", () => assert.ok(Object.keys(FAULTS).length >= 100));

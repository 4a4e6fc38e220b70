/** What no vector shows, on the client and on planted faults: each is caught by the check that it names. */
import assert from "node:assert/strict";
import test from "node:test";
import { SOURCE, planted } from "./support/files.js";
import { BEYOND } from "./support/planted.js";
import { RULES } from "./support/rules.js";

for (const [name, check] of Object.entries(RULES)) test(name, () => check(SOURCE));

for (const [name, [check, ...fault]] of Object.entries(BEYOND))
  test(`caught: ${name}`, async () => {
    const found = await planted(fault, (sv, source) => RULES[check](source).then(() => null, (problem) => problem));
    assert.equal(found?.code, "ERR_ASSERTION");
    assert.doesNotMatch(found.message, /is not defined|Unexpected token|not a function/); // a fault, not a slip of ours
  });

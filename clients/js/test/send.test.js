/** How reports are sent: on the client, and on planted faults, each of which the check that it names catches. */
import assert from "node:assert/strict";
import test from "node:test";
import { SOURCE, planted } from "./support/files.js";
import { FAULTS, RULES } from "./support/sending.js";

for (const [name, check] of Object.entries(RULES)) test(name, () => check(SOURCE));

for (const [name, [check, ...changes]] of Object.entries(FAULTS))
  test(`caught: ${name}`, async () => {
    const found = await planted(changes.length % 2 ? changes : ["send", ...changes], (_, source) => RULES[check](source).then(() => null, (problem) => problem));
    assert.equal(found?.code, "ERR_ASSERTION", found?.stack);
    assert.doesNotMatch(found.message, /is not defined|Unexpected token|not a function/); // a fault, not a slip of ours
  });

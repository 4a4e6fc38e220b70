/** Capped users of random boxes: what they leave is shared among the other categories as the format says. */
import assert from "node:assert/strict";
import test from "node:test";
import { client } from "./support/checks.js";
import { capped } from "./support/boxes.js";
import { SOURCE, planted } from "./support/files.js";
import { CAPPED } from "./support/planted.js";

test("capped users are drawn as the format says", async () => {
  assert.deepEqual([...capped(await client(SOURCE), 2000)], []);
});

for (const [name, fault] of Object.entries(CAPPED))
  test(`caught: ${name}`, async () => {
    await planted(fault, async (sv) => assert.notEqual([...capped(sv, 300)].length, 0));
  });

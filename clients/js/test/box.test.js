/** Step 2 of the clip where knots crowd: the solution is exact, and the fast search agrees with the weights. */
import assert from "node:assert/strict";
import test from "node:test";
import { client } from "./support/checks.js";
import { crowded } from "./support/boxes.js";
import { SOURCE, planted } from "./support/files.js";
import { RARE } from "./support/planted.js";

test("crowded knots are solved exactly", async () => {
  assert.deepEqual([...crowded(await client(SOURCE), 3000)], []);
});

for (const [name, fault] of Object.entries(RARE))
  test(`caught: ${name}`, async () => {
    await planted(fault, async (sv) => assert.notEqual([...crowded(sv, 3000)].length, 0));
  });

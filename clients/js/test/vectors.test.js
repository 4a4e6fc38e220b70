/** The vectors of tests/vectors against this client. */
import assert from "node:assert/strict";
import test from "node:test";
import { all, client, complaints } from "./support/checks.js";
import { SOURCE, readVectors } from "./support/files.js";

test("the client gets every vector right", async () => {
  const sv = await client(SOURCE);
  assert.deepEqual(await all(complaints(sv, readVectors())), []);
});

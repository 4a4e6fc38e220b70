/** The vectors of tests/vectors against this client. */
import assert from "node:assert/strict";
import test from "node:test";
import { readFileSync } from "node:fs";
import { all, bytesOf, client, complaints, verdict } from "./support/checks.js";
import { SOURCE, readVectors } from "./support/files.js";

test("the client gets every vector right", async () => {
  const sv = await client(SOURCE);
  assert.deepEqual(await all(complaints(sv, readVectors())), []);
});

test("files of streams are refused where one mechanism is expected", async () => {
  const sv = await client(SOURCE);
  const { files } = JSON.parse(readFileSync(new URL("../../../tests/vectors/stream_draws.json", import.meta.url), "utf8"));
  assert.ok(files.length > 8);
  for (const file of files) assert.notEqual(await verdict(sv, bytesOf(file)), null, file.name);
  for (const file of files.filter((one) => !one.reason)) assert.equal(await verdict(sv, bytesOf(file)), "format", file.name);
});

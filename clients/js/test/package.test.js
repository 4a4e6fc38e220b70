/** The package as others see it: its size, its names, and that nothing can be seeded. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { CORE, pack } from "../tools/pack.js";
import { bytesOf } from "./support/checks.js";
import { HOME, folder, readVectors } from "./support/files.js";

const text = (name) => readFileSync(new URL(name, HOME), "utf8");
const told = JSON.parse(text("package.json"));
const POLICY = { maxEpsilon: 30, maxCategories: 1e6, digest: "any" };
const encode = (value) => new TextEncoder().encode(value);

async function packed() {
  const path = join(folder(), "packed.mjs");
  writeFileSync(path, pack());
  return import(path);
}

/** Run with bytes of a vector in place of the generator's; how many were asked for. */
function onTape(bytes, run) {
  const own = crypto.getRandomValues;
  let asked = 0;
  crypto.getRandomValues = (array) => {
    asked += array.length;
    array.set(Buffer.from(bytes, "hex"));
    return array;
  };
  try {
    return [run(), asked];
  } finally {
    crypto.getRandomValues = own;
  }
}

test("the core is below 7 KB", () => {
  assert.ok(gzipSync(pack(), { level: 9 }).length < 7 * 1024);
});

test("nothing is imported but our own files, and the core imports only what is packed", () => {
  for (const name of readdirSync(new URL("src/", HOME)))
    for (const [, from] of text(`src/${name}`).matchAll(/from "(.*?)"/g))
      assert.ok(from.startsWith("./") || (name === "budget_node.js" && from.startsWith("node:")), `${name}: ${from}`);
  for (const name of CORE)
    for (const [, from] of text(`src/${name}.js`).matchAll(/from "\.\/(.*?)\.js"/g)) assert.ok(CORE.includes(from));
  assert.equal(told.dependencies, undefined);
  assert.equal(text("LICENSE"), text("../../LICENSE"));
});

test("the only randomness is crypto.getRandomValues, in one place", () => {
  const all = readdirSync(new URL("src/", HOME)).map((name) => text(`src/${name}`)).join("\n");
  assert.equal(all.match(/getRandomValues/g).length, 1);
  assert.doesNotMatch(all, /Math\.random|randomBytes|randomUUID|seed[^.]*=/);
});

test("types name exactly what is exported", async () => {
  for (const [entry, { types, node, default: source }] of Object.entries(told.exports).filter(([, one]) => one.types)) {
    if (entry === "./packed") continue;
    const names = [...text(types).matchAll(/^export (?:declare )?(?:class|function|const) (\w+)/gm)].map((one) => one[1]);
    for (const [, list] of text(types).matchAll(/^export \{ (.*?) \}/gm)) names.push(...list.split(", "));
    for (const file of new Set([node || source])) {
      const found = Object.keys(await import(new URL(file, HOME)));
      assert.deepEqual(found.sort(), names.sort(), entry);
    }
  }
  const [mechanism] = [await (await packed()).load(encode(readVectors().draws_box.files[0].text), POLICY)];
  const facts = /interface MechanismFacts \{([^]*?)\n\}/.exec(text("index.d.ts"))[1] + /interface Mechanism [^]*?\{([^]*?)\n\}/.exec(text("index.d.ts"))[1];
  const members = [...facts.matchAll(/^  (?:readonly )?(\w+)[(:]/gm)].map((one) => one[1]);
  assert.deepEqual(Object.keys(mechanism).sort(), members.sort());
});

test("inner files cannot be imported by the package's name", async () => {
  for (const inner of ["draw", "box", "nearest", "counts", "mechanism"])
    await assert.rejects(import(`sottovoce/src/${inner}.js`), { code: /ERR_PACKAGE_PATH_NOT_EXPORTED/ });
  assert.ok((await import("sottovoce")).load);
});

for (const [name, get] of [["the core", () => import("../src/core.js")], ["the packed core", packed]])
  test(`${name}: public releases read the bytes of the vectors, so many and all at once`, async () => {
    const sv = await get();
    let count = 0;
    for (const kind of ["draws_box", "draws_nearest", "draws_kernel", "draws_response", "draws_survey"])
      for (const file of readVectors()[kind].files) {
        const mechanism = await sv.load(encode(file.text), POLICY);
        assert.equal(mechanism.bytes, file.bytes);
        const release = ({ records, counts, shares, unknown }) => {
          const options = unknown && { unknown };
          if (shares) return mechanism.releaseShares(shares);
          return records ? mechanism.release(records, options) : mechanism.releaseCounts(new Map(counts), options);
        };
        for (const user of file.users)
          for (const { bytes, released } of user.draws) {
            assert.deepEqual(onTape(bytes, () => release(user)), [released, file.bytes]);
            count++;
          }
        for (const user of file.refused_users) {
          const [problem, asked] = onTape("", () => {
            try {
              release(user);
            } catch (error) {
              return error;
            }
          });
          assert.ok(problem instanceof sv.Refused);
          assert.equal(asked, 0);
          for (const one of user.records || user.counts.flat())
            if (typeof one === "string" && one) assert.ok(!problem.message.includes(one), problem.message);
        }
      }
    for (const file of readVectors().files_refused.files.filter((one) => !one.policy))
      await assert.rejects(sv.load(bytesOf(file), POLICY), sv.Refused, file.name);
    assert.ok(count > 1000);
  });

test("a mechanism is frozen, a policy is required, a report is of its form", async () => {
  const sv = await import("../src/core.js");
  const bytes = encode(readVectors().draws_box.files[0].text);
  const wrong = [undefined, null, {}, { maxEpsilon: 1 }, { ...POLICY, maxepsilon: 1 }, { ...POLICY, digest: undefined },
    { ...POLICY, maxEpsilon: NaN }, { ...POLICY, maxEpsilon: "2" }, { ...POLICY, maxCategories: "9" }, { ...POLICY, digests: [] }];
  for (const policy of wrong) await assert.rejects(sv.load(bytes, policy), sv.Refused);
  const mechanism = await sv.load(bytes, POLICY);
  assert.ok(Object.isFrozen(mechanism) && Object.isFrozen(mechanism.categories));
  const one = sv.report(mechanism, mechanism.categories[0]);
  assert.deepEqual(Object.keys(one), ["mechanism", "id", "category"]);
  assert.match(one.id, /^[0-9a-f]{32}$/);
  assert.notEqual(one.id, sv.report(mechanism, one.category).id);
  assert.throws(() => sv.report(mechanism, "nowhere"), sv.Refused);
});

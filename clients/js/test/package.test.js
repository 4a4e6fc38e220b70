/** The package as others see it: its size, its names, its types, and that nothing can be seeded. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bytesOf } from "./support/checks.js";
import { HOME, readVectors } from "./support/files.js";

const text = (name) => readFileSync(new URL(name, HOME), "utf8");
const told = JSON.parse(text("package.json"));
const POLICY = { maxEpsilon: 30, maxCategories: 1e6, digest: "any" };
const encode = (value) => new TextEncoder().encode(value);

/** Tools are those of page/: `make test-js` installs them, and without npm what needs them skips. */
const TOOLS = new URL("../../page/node_modules/", HOME);
const skip = (name) => (existsSync(new URL(name, TOOLS)) ? false : `${name} is missing: npm ci --ignore-scripts --prefix page`);

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

test("the core is as small as the README says", { skip: skip("esbuild") }, async () => {
  const { build } = await import(new URL("esbuild/lib/main.js", TOOLS));
  const sizeOf = async (name) => {
    const options = { bundle: true, minify: true, write: false, format: "esm", target: "es2022", legalComments: "none" };
    const { outputFiles } = await build({ ...options, entryPoints: [fileURLToPath(new URL(name, HOME))] });
    return gzipSync(outputFiles[0].contents, { level: 9 }).length / 1000;
  };
  const [, core, more] = /the core is ([\d.]+) kB minified and gzipped, `sottovoce\/send` ([\d.]+) kB more/.exec(text("README.md"));
  const [size, sending] = [await sizeOf("src/core.js"), await sizeOf("test/support/both.js")];
  assert.ok(Math.abs(size - core) <= 0.1 && Math.abs(sending - size - more) <= 0.1, `${size} kB, ${sending - size} kB more`);
});

test("nothing is imported but our own files", () => {
  for (const name of readdirSync(new URL("src/", HOME)))
    for (const [, from] of text(`src/${name}`).matchAll(/from "(.*?)"/g))
      assert.ok(from.startsWith("./") || (name === "budget_node.js" && from.startsWith("node:")), `${name}: ${from}`);
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
    const names = [...text(types).matchAll(/^export (?:declare )?(?:class|function|const) (\w+)/gm)].map((one) => one[1]);
    for (const [, list] of text(types).matchAll(/^export \{ (.*?) \}/gm)) names.push(...list.split(", "));
    for (const file of new Set([node || source])) {
      const found = Object.keys(await import(new URL(file, HOME)));
      assert.deepEqual(found.sort(), names.sort(), entry);
    }
  }
  const mechanism = await (await import("../src/core.js")).load(encode(readVectors().draws_box.files[0].text), POLICY);
  const facts = /interface MechanismFacts \{([^]*?)\n\}/.exec(text("index.d.ts"))[1] + /interface Mechanism [^]*?\{([^]*?)\n\}/.exec(text("index.d.ts"))[1];
  const members = [...facts.matchAll(/^  (?:readonly )?(\w+)[(:]/gm)].map((one) => one[1]);
  assert.deepEqual(Object.keys(mechanism).sort(), members.sort());
});

test("inner files cannot be imported by the package's name", async () => {
  for (const inner of ["draw", "box", "nearest", "counts", "mechanism"])
    await assert.rejects(import(`sottovoce/src/${inner}.js`), { code: /ERR_PACKAGE_PATH_NOT_EXPORTED/ });
  assert.ok((await import("sottovoce")).load);
});

test("public releases read the bytes of the vectors, so many and all at once", async () => {
  const sv = await import("../src/core.js");
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

test("every export has types and exists, and the user of the types compiles", { skip: skip("typescript") }, () => {
  for (const [entry, { types, node, default: source }] of Object.entries(told.exports).filter(([name]) => name !== "./package.json"))
    for (const file of [types, node ?? source, source]) assert.ok(existsSync(new URL(file, HOME)), entry);
  for (const resolution of ["nodenext", "bundler"]) {
    const tsc = fileURLToPath(new URL("typescript/bin/tsc", TOOLS));
    const options = ["--module", resolution === "bundler" ? "preserve" : resolution, "--moduleResolution", resolution];
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", fileURLToPath(new URL("test/types", HOME)), ...options], { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  }
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

/** Where the client and the vectors are, for tests in Node. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { FILES, client } from "./checks.js";

export const HOME = new URL("../../", import.meta.url);
export const SOURCE = new URL("src", HOME).href;
const VECTORS = new URL("../../tests/vectors/", HOME);

export const readVectors = () =>
  Object.fromEntries(FILES.map((name) => [name, JSON.parse(readFileSync(new URL(`${name}.json`, VECTORS), "utf8"))]));

const folders = [];
process.on("exit", () => folders.forEach((one) => rmSync(one, { recursive: true, force: true })));

/** A new folder that is gone when the tests are. */
export function folder() {
  folders.push(mkdtempSync(join(tmpdir(), "sottovoce-")));
  return folders.at(-1);
}

/** Plant a fault in a copy of the client, and use this one: all its inner functions, and where its files are. */
export async function planted([file, ...changes], use) {
  const home = mkdtempSync(join(tmpdir(), "sottovoce-"));
  try {
    const folder = join(home, "src");
    cpSync(fileURLToPath(new URL("src", HOME)), folder, { recursive: true });
    writeFileSync(join(home, "package.json"), '{"type": "module"}');
    const path = join(folder, `${file}.js`);
    let text = readFileSync(path, "utf8");
    for (let i = 0; i < changes.length; i += 2) {
      assert.ok(text.includes(changes[i]), `there is nothing to replace: ${changes[i]}`);
      text = text.replaceAll(changes[i], () => changes[i + 1]);
    }
    writeFileSync(path, text);
    const source = pathToFileURL(folder).href;
    return await use(await client(source), source);
  } finally {
    rmSync(home, { recursive: true });
  }
}

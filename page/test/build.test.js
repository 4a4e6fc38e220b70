/** The pages of the Python package are what page/build.js makes of these sources. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const HOME = fileURLToPath(new URL("..", import.meta.url));
const skip = existsSync(join(HOME, "node_modules", "esbuild")) ? false : "page/node_modules is missing: npm ci --prefix page";

test("the committed pages are built from the sources", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  execFileSync(process.execPath, [join(HOME, "build.js"), folder]);
  for (const name of ["page.html", "serving/page.html"]) {
    const [built, committed] = [folder, join(HOME, "..", "src", "sottovoce")].map((place) => readFileSync(join(place, name), "utf8"));
    assert.ok(built === committed, `${name}: run make page and commit what it writes`);
  }
});

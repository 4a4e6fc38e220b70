/**
 * Writes the two pages of the Python package, each one file with its script and style inside:
 * node build.js [folder]; the folder is src/sottovoce unless another one is named.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HOME = dirname(fileURLToPath(import.meta.url));
const PACKAGES = ["preact", "d3-dsv", "hyparquet", "fzstd"];
/** The template, its script and style, where it goes, and whose licences it has to show. */
const PAGES = [
  ["explorer.html", "explorer.jsx", "page.css", "page.html", PACKAGES],
  ["collector.html", "collector.jsx", "collector.css", "serving/page.html", ["preact"]],
];
const OPTIONS = {
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2023",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
};

const bundled = async (name) => (await build({ ...OPTIONS, entryPoints: [join(HOME, "view", name)] })).outputFiles[0].text.trim();
const read = (...path) => readFileSync(join(HOME, ...path), "utf8");
const licenceOf = (name) => `${name} ${JSON.parse(read("node_modules", name, "package.json")).version}\n\n${read("node_modules", name, "LICENSE")}`;
const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** One page: the template with its parts filled in. */
async function page(template, script, stylesheet, packages) {
  const code = await bundled(script);
  const style = await bundled(stylesheet);
  const licences = packages.map(licenceOf).join("\n\n").trim();
  const parts = {
    STYLE: style,
    STYLE_HASH: hashOf(style),
    SCRIPT: code,
    SCRIPT_HASH: hashOf(code),
    LICENCES: licences.replaceAll("<", "&lt;"),
  };
  return read("view", template).replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
}

const folder = process.argv[2] ?? join(HOME, "..", "src", "sottovoce");
for (const [template, script, stylesheet, target, packages] of PAGES) {
  mkdirSync(dirname(join(folder, target)), { recursive: true });
  writeFileSync(join(folder, target), await page(template, script, stylesheet, packages));
}

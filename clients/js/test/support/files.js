/** Where the client and the vectors are, for tests in Node. */
import { readFileSync } from "node:fs";
import { FILES } from "./checks.js";

export const HOME = new URL("../../", import.meta.url);
export const SOURCE = new URL("src", HOME).href;
const VECTORS = new URL("../../tests/vectors/", HOME);

export const readVectors = () =>
  Object.fromEntries(FILES.map((name) => [name, JSON.parse(readFileSync(new URL(`${name}.json`, VECTORS), "utf8"))]));

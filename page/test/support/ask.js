/** Answers for tests/test_page.py: node ask.js questions.json answers.json */
import { readFileSync, writeFileSync } from "node:fs";
import { answer } from "./answers.js";

const [, , asked, answered] = process.argv;
writeFileSync(answered, JSON.stringify(JSON.parse(readFileSync(asked, "utf8")).map(answer)));

/** Streams for tests/release/test_stream.py: node walk.js questions.json answers.json; every step by the inner functions. */
import { readFileSync, writeFileSync } from "node:fs";
import { firstState, prepareStream, stepFrom, unitsOfR } from "../../src/steps.js";

const [, , asked, answered] = process.argv;
const found = JSON.parse(readFileSync(asked, "utf8")).map(({ text, steps }) => {
  const plain = JSON.parse(text);
  const [up, down] = plain.ratio.split("/").map(BigInt);
  const parts = { ...plain, n: plain.categories.length, prior: plain.prior.map(BigInt), start: BigInt(plain.start), ...unitsOfR(up, down), epsilon: plain.epsilon.split("/") };
  const ready = prepareStream(parts);
  let state = firstState(parts);
  return steps.map(([mine, counts, word]) => {
    const [i, next] = stepFrom(ready, { mine, counts: counts.map(BigInt) }, state, BigInt(word));
    state = next;
    return [i, String(state.low), String(state.high), state.last];
  });
});
writeFileSync(answered, JSON.stringify(found));

/** Random boxes and capped users: every word at an end of an interval, against the definition in docs/format.md. */
import { law } from "./laws.js";

const N = 1n << 62n;
const below = (bound) => BigInt(Math.floor(Math.random() * Number(bound))); // tests only: nothing is released
const add = (list) => list.reduce((a, b) => a + b, 0n);

/** A box of n categories around a prior, which it keeps or not. */
function someBox(n, keeps) {
  const prior = Array.from({ length: n }, () => below(N >> 4n) + 1n);
  prior[0] += N - add(prior);
  const low = prior.map((one) => (keeps ? one : 1n + below(N / BigInt(n))) - below(one >> 1n)).map((one) => (one > 0n ? one : 1n));
  const high = low.map((one, i) => (keeps && prior[i] > one ? prior[i] : one) + below(N >> 5n));
  return { kind: "box", n, prior, low, high, keeps };
}

/** Yields complaints: laws that leave the box or are not one, and words that fall into another category. */
export function* capped(client, count) {
  for (let round = 0, users = 0; users < count; round++) {
    const box = someBox(3 + (round % 6), round % 2 === 0);
    if (add(box.low) > N || add(box.high) < N) continue;
    const mine = [...box.low.keys()].filter(() => Math.random() < 0.4);
    const first = box.low.map((one, i) => (mine.includes(i) ? box.high[i] : one));
    if (!mine.length || add(first) >= N) continue;
    users++;
    const user = { mine, counts: mine.map(() => 1n) };
    const ready = { ...box, ready: client.prepareBox(box) };
    const weights = law(client, ready, user);
    if (add(weights) !== N) yield `round ${round}: not one`;
    if (weights.some((one, i) => one < first[i] || one > box.high[i])) yield `round ${round}: not in the box`;
    let end = 0n;
    for (const [k, size] of [...first, ...weights.map((one, i) => one - first[i])].entries()) {
      const words = size ? [end, end + size - 1n, end + size / 2n] : [];
      end += size;
      for (const word of words)
        if (client.drawBox(ready, user, [word]) !== k % box.n) yield `round ${round}: word ${word}`;
    }
  }
}

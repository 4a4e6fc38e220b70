import { need } from "./refuse.js";

/** One, in the units of all weights: 2^62. */
export const N = 1n << 62n;
export const sum = (list) => list.reduce((a, b) => a + b, 0n);
export const ceil = (a, b) => (a + b - 1n) / b;
export const digits = (number) => number.toString(2).length;

/** A weight: a text of digits, at most N. */
export const whole = (text) => {
  need(typeof text === "string" && /^(0|[1-9]\d{0,18})$/.test(text), "value", "whole");
  const found = BigInt(text);
  need(found <= N, "value", "whole");
  return found;
};

/** A fraction in lowest terms, as [a, b]. */
export function fraction(text) {
  const found = typeof text === "string" && /^(0|[1-9]\d{0,79})\/([1-9]\d{0,399})$/.exec(text);
  need(found, "value", "fraction");
  const [a, b] = [BigInt(found[1]), BigInt(found[2])];
  let [x, y] = [a, b];
  while (y) [x, y] = [y, x % y];
  need(x === 1n, "value", "lowest terms");
  return [a, b];
}

/** ⌊2^64·e^(a/b)⌋ / 2^64 in lowest terms, as text: series from below and from above until they agree. */
export function ratio(a, b) {
  for (let places = 256n; ; places *= 2n) {
    let below = 1n << places;
    let above = below;
    let low = below;
    let high = below;
    for (let j = 1n; ; j++) {
      below = (below * a) / (b * j);
      above = ceil(above * a, b * j);
      low += below;
      high += above;
      if (2n * a <= b * (j + 1n) && above <= 1n) break;
    }
    high += 2n * above;
    let up = low >> (places - 64n);
    if (up !== high >> (places - 64n)) continue;
    let down = 1n << 64n;
    while (down > 1n && !(up & 1n)) {
      up >>= 1n;
      down >>= 1n;
    }
    return up + "/" + down;
  }
}

/** A number of the policy as an exact fraction [a, b]: a double means itself, a text "a/b" means a/b. */
export function limit(value) {
  if (typeof value === "string") return fraction(value);
  need(typeof value === "number" && value > 0 && value < 2 ** 53, "policy", "limit");
  let below = 1n;
  for (; !Number.isInteger(value); value *= 2) below *= 2n;
  return [BigInt(value), below];
}

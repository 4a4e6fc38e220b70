/** SHA-256 of ASCII text, in hexadecimal. Our own, because crypto.subtle is missing on insecure origins and only async. */
const K = new Int32Array(64);
const START = [];
/** The first 32 bits behind the point of a root of p, by whole numbers alone. */
const root = (p, power) => {
  const target = BigInt(p) << BigInt(32 * power);
  let low = 0n;
  for (let bit = 1n << 36n; bit; bit >>= 1n) if ((low + bit) ** BigInt(power) <= target) low += bit;
  return Number(BigInt.asIntN(32, low));
};
for (let p = 2, count = 0; count < 64; p++) {
  let prime = true;
  for (let q = 2; q * q <= p; q++) prime &&= p % q > 0;
  if (!prime) continue;
  if (count < 8) START.push(root(p, 2));
  K[count++] = root(p, 3);
}

const w = new Int32Array(64);
/** Take one block of 64 bytes into h. */
function compress(h, view, at) {
  let [a, b, c, d, e, f, g, i] = h;
  for (let t = 0; t < 64; t++) {
    if (t < 16) w[t] = view.getInt32(at + 4 * t);
    else {
      const x = w[t - 15];
      const y = w[t - 2];
      w[t] =
        w[t - 16] + w[t - 7] +
        (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) +
        (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10));
    }
    const one =
      (i + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) +
        ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
    const two =
      (((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c));
    i = g; g = f; f = e;
    e = (d + one) | 0;
    d = c; c = b; b = a;
    a = (one + two) | 0;
  }
  h[0] += a; h[1] += b; h[2] += c; h[3] += d;
  h[4] += e; h[5] += f; h[6] += g; h[7] += i;
}

export function sha256(text) {
  const length = text.length;
  const bytes = new Uint8Array(((length + 72) >> 6) * 64);
  new TextEncoder().encodeInto(text, bytes);
  bytes[length] = 128;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, length / 0x20000000);
  view.setUint32(bytes.length - 4, length << 3);
  const h = Int32Array.from(START);
  for (let at = 0; at < bytes.length; at += 64) compress(h, view, at);
  return Array.from(h, (part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
}

/**
 * How reports are sent, against a server of node:http on this machine. Each check takes the address of a folder `src` and
 * fails by an assertion; test/send.test.js runs it on the client and on planted faults. No check waits: time is invented.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

const REPORT = Object.freeze({ mechanism: "ab".repeat(32), id: "0123456789abcdef".repeat(2), category: "Grüße" });
const START = Date.parse("Wed, 18 Nov 2026 12:00:00 GMT");
const part = (source) => import(`${source}/send.js`);

/** A collector that gives these answers in turn, the last one again: [status, headers, text]. It keeps what it was sent. */
async function collector(answers, run, port = 0) {
  const seen = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ method: request.method, path: request.url, type: request.headers["content-type"], ...(request.headers.authorization && { key: request.headers.authorization }), body: Buffer.concat(chunks).toString("hex") });
    const [status, headers, text] = answers[Math.min(seen.length, answers.length) - 1];
    response.writeHead(status, headers).end(text);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  try {
    await run(`http://127.0.0.1:${server.address().port}/v1/reports`, seen);
    return seen;
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
}

/** Invented time: a pause takes no time but is noted, and `meanwhile` runs in it; an attempt ends only if `expires` does. */
function invented({ random = () => 0.5, meanwhile = () => {}, expires = () => new AbortController().signal } = {}) {
  const pauses = [];
  let now = START;
  const wait = async (milliseconds) => {
    pauses.push(milliseconds);
    now += milliseconds;
    await meanwhile();
  };
  return { pauses, clock: { now: () => now, random, wait, expire: expires } };
}

/** A send that succeeds; otherwise the check fails. */
const sent = (run) => assert.doesNotReject(async () => run());

/** The error of a send that fails; a send that hangs, as only a planted fault does, fails the check after 5 seconds. */
async function failed(run) {
  let timer;
  const hanging = new Promise((resolve) => (timer = setTimeout(resolve, 5000, "hangs")));
  const outcome = await Promise.race([run().then(() => "was sent", (problem) => problem), hanging]);
  clearTimeout(timer);
  assert.ok(outcome instanceof Error, `it ${outcome}`);
  return outcome;
}

const unsent = async (run, { status, final, attempts }) => {
  const problem = await failed(run);
  assert.deepEqual([problem.name, problem.status, problem.final, problem.attempts], ["SendError", status, final, attempts], problem.stack);
  return problem;
};

export const RULES = {
  async "a key goes with every attempt"(source) {
    const { send } = await part(source);
    const { clock } = invented();
    const seen = await collector([[503], [202]], (url) => sent(() => send(url, REPORT, { clock, key: "k3y" })));
    assert.deepEqual(seen.map((request) => request.key), ["Bearer k3y", "Bearer k3y"]);
  },

  async "the same bytes are sent again until they are answered 202"(source) {
    const { send } = await part(source);
    const { clock, pauses } = invented();
    const seen = await collector([[503], [500], [408], [425], [502], [202]], (url) => sent(() => send(url, REPORT, { clock })));
    assert.equal(seen.length, 6);
    for (const one of seen) assert.deepEqual(one, seen[0]);
    const { body, ...head } = seen[0];
    assert.deepEqual(head, { method: "POST", path: "/v1/reports", type: "application/json" });
    assert.deepEqual(JSON.parse(Buffer.from(body, "hex").toString()), { reports: [REPORT] });
    assert.deepEqual(pauses, [250, 500, 1000, 2000, 4000]);
  },

  async "what the caller changes meanwhile is not sent"(source) {
    const { send } = await part(source);
    const changing = { ...REPORT };
    const { clock } = invented({ meanwhile: () => (changing.category = "other") });
    const seen = await collector([[503], [202]], (url) => sent(() => send(url, [changing], { clock })));
    assert.equal(seen[1].body, seen[0].body);
  },

  async "pauses double up to 30 seconds, and are random"(source) {
    const { send } = await part(source);
    const options = { attempts: 10, timeout: 1e9 };
    for (const share of [0, 0.999]) {
      const { clock, pauses } = invented({ random: () => share });
      await collector([[503]], (url) => unsent(() => send(url, REPORT, { ...options, clock }), { status: 503, final: false, attempts: 10 }));
      assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000].map((one) => one * share));
    }
  },

  async "Retry-After is waited for, in seconds or as a date"(source) {
    const { send } = await part(source);
    const asked = ["7", "Wed, 18 Nov 2026 12:01:00 GMT", "Wed, 18 Nov 2026 11:00:00 GMT", "soon", "-5", "2027-01-01"];
    const answers = asked.map((text) => [429, { "retry-after": text }]);
    const { clock, pauses } = invented({ random: () => 0 });
    await collector([...answers, [202]], (url) => sent(() => send(url, REPORT, { clock })));
    assert.deepEqual(pauses, [7000, 53000, 0, 0, 0, 0]);
    const late = invented();
    const options = { clock: late.clock, timeout: 60000 };
    await collector([[429, { "retry-after": "3600" }], [202]], (url) => unsent(() => send(url, REPORT, options), { status: 429, final: false, attempts: 1 }));
    assert.deepEqual(late.pauses, []);
  },

  async "a final answer is not asked for again"(source) {
    const { send } = await part(source);
    for (const status of [200, 204, 301, 302, 307, 400, 401, 403, 404, 405, 409, 413, 415, 422]) { // 421: fetch itself sends once more
      const { clock, pauses } = invented();
      const headers = status > 300 && status < 400 ? { location: "/elsewhere" } : {};
      const text = status === 204 ? "" : '{"error": "why"}';
      const seen = await collector([[status, headers, text], [202]], async (url) => {
        const problem = await unsent(() => send(url, REPORT, { clock }), { status, final: true, attempts: 1 });
        assert.ok(problem.message.includes(text), problem.message);
      });
      assert.equal(seen.length, 1, String(status));
      assert.deepEqual(pauses, []);
    }
  },

  async "no more of an answer is read than is shown"(source) {
    const { send } = await part(source);
    const chunk = new TextEncoder().encode("é".repeat(20000));
    for (const size of [chunk.length, 7]) { // 7: characters are cut in two
      let pulls = 0;
      let ended = false;
      const pull = (controller) => {
        if (++pulls > 2000) controller.close(); // so much that it shows: it could be without an end
        else controller.enqueue(chunk.slice(0, size));
      };
      const body = new ReadableStream({ pull, cancel: () => void (ended = true) }, { highWaterMark: 0 });
      const fetch = async () => new Response(body, { status: 400 });
      const { message } = await unsent(() => send("http://127.0.0.1/", REPORT, { fetch }), { status: 400, final: true, attempts: 1 });
      assert.ok(pulls * size <= 100000, `${pulls} pieces were read`);
      assert.ok(ended, "the rest was not cancelled");
      assert.equal(/\): (.*)$/.exec(message)[1].length, 300);
    }
    const empty = async () => new Response(null, { status: 400 });
    await unsent(() => send("http://127.0.0.1/", REPORT, { fetch: empty }), { status: 400, final: true, attempts: 1 });
    const torn = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("why")), pull: (controller) => controller.error(new Error("torn")) });
    const breaking = async () => new Response(torn, { status: 400 });
    await unsent(() => send("http://127.0.0.1/", REPORT, { fetch: breaking }), { status: 400, final: true, attempts: 1 });
  },

  async "attempts and time are bounded"(source) {
    const { send } = await part(source);
    for (const [options, attempts] of [[{}, 8], [{ attempts: 3 }, 3], [{ attempts: 1 }, 1], [{ timeout: 1000 }, 3], [{ timeout: 1 }, 1]]) {
      const { clock } = invented();
      const seen = await collector([[503]], (url) => unsent(() => send(url, REPORT, { ...options, clock }), { status: 503, final: false, attempts }));
      assert.equal(seen.length, attempts);
    }
  },

  async "a collector that is down is sent to again, and one that hangs is left"(source) {
    const { send } = await part(source);
    let address;
    await collector([[202]], (url) => (address = url));
    let up;
    const arrived = new Promise((resolve) => (up = resolve));
    let running;
    const meanwhile = async () => {
      await new Promise((ready) => (running = collector([[202]], async () => (ready(), await arrived), new URL(address).port)));
    };
    const { clock, pauses } = invented({ meanwhile });
    await sent(() => send(address, REPORT, { clock }));
    up();
    assert.equal((await running).length, 1);
    assert.equal(pauses.length, 1);

    const limits = [];
    const expires = (milliseconds) => {
      limits.push(milliseconds);
      const limit = new AbortController();
      setImmediate(() => limit.abort());
      return limit.signal;
    };
    const silent = (url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const options = { clock: invented({ expires }).clock, fetch: silent, timeout: 30500 };
    await unsent(() => send(address, REPORT, options), { status: 0, final: false, attempts: 7 });
    assert.deepEqual(limits.slice(0, 3), [30000, 30000, 29750]);
  },

  async "an abort ends an attempt and a pause"(source) {
    const { send } = await part(source);
    const controller = new AbortController();
    const why = new Error("the page is left");
    const { clock } = invented({ meanwhile: () => controller.abort(why) });
    const seen = await collector([[503]], async (url) => {
      assert.equal(await failed(() => send(url, REPORT, { clock, signal: controller.signal })), why);
      assert.equal(await failed(() => send(url, REPORT, { signal: controller.signal })), why);
    });
    assert.equal(seen.length, 1);
    const during = new AbortController();
    const silent = (url, { signal }) => {
      queueMicrotask(() => during.abort(why));
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const options = { clock: invented().clock, fetch: silent, signal: during.signal, attempts: 1 };
    assert.equal(await failed(() => send("http://127.0.0.1/", REPORT, options)), why);
  },

  async "the clock of the machine ends a pause when it is aborted"(source) {
    const { send } = await part(source);
    const controller = new AbortController();
    const refusing = async () => {
      setImmediate(() => controller.abort());
      return new Response(null, { status: 503, headers: { "retry-after": "6" } });
    };
    const { name } = await failed(() => send("http://127.0.0.1/", REPORT, { fetch: refusing, signal: controller.signal }));
    assert.equal(name, "AbortError");
  },

  async "nothing but reports is sent, and only the report"(source) {
    const { send } = await part(source);
    const inits = [];
    const fetch = async (_, init) => (inits.push(init), new Response(null, { status: 202 }));
    const address = "http://127.0.0.1/v1/reports";
    const { category, ...lacking } = REPORT;
    const wrong = ["secret", ["secret"], [], undefined, null, {}, lacking, { ...REPORT, records: ["secret"] }, { ...REPORT, id: "secret" },
      { ...REPORT, category: ["secret"] }, { ...REPORT, mechanism: "secret" }, [REPORT, "secret"]];
    const isCall = (problem) => problem.reason === "call" && !problem.message.includes("secret");
    for (const one of wrong) assert.ok(isCall(await failed(() => send(address, one, { fetch }))), JSON.stringify(one));
    for (const options of [{ attempts: 0 }, { attempts: 1.5 }, { timeout: 0 }, { timeout: Infinity }])
      assert.ok(isCall(await failed(() => send(address, REPORT, { ...options, fetch }))));
    assert.ok(isCall(await failed(() => send("/v1/reports", REPORT, { fetch }))));
    assert.equal(inits.length, 0);
    await send(address, [REPORT, { ...REPORT, category: 3, group: "young" }], { fetch });
    const { credentials, redirect, referrerPolicy } = inits[0];
    assert.deepEqual({ credentials, redirect, referrerPolicy }, { credentials: "omit", redirect: "manual", referrerPolicy: "no-referrer" });
  },
};

const AGAIN = "the same bytes are sent again until they are answered 202";
const PAUSES = "pauses double up to 30 seconds, and are random";
const AFTER = "Retry-After is waited for, in seconds or as a date";
const FINAL = "a final answer is not asked for again";
const BOUND = "attempts and time are bounded";
const DOWN = "a collector that is down is sent to again, and one that hangs is left";
const ABORT = "an abort ends an attempt and a pause";
const KEY = "a key goes with every attempt";
const READ = "no more of an answer is read than is shown";
const ONLY = "nothing but reports is sent, and only the report";

/** Faults: the check that catches each, the file unless it is send.js, what is replaced, and by what. */
export const FAULTS = {
  "no key": [KEY, "key !== undefined", "false"],
  "another kind of key": [KEY, "Bearer", "Basic"],
  "503 is final": [AGAIN, "status >= 500", "status >= 504"],
  "408 is final": [AGAIN, "status === 408 || ", ""],
  "429 is final": [AFTER, " || status === 429", ""],
  "every answer is temporary": [FINAL, "!isTemporary(status)", "false"],
  "200 is taken for 202": [FINAL, "if (status === 202) return;", "if (status >= 200 && status < 300) return;"],
  "redirects are followed": [FINAL, 'redirect: "manual"', 'redirect: "follow"'],
  "the answer is not shown": [FINAL, "{text && \": \" + text}", "{\"\"}"],
  "an answer is read to its end": [READ, "text.length < SHOWN", "true"],
  "the rest of an answer is left open": [READ, "reader?.cancel().catch(() => {});", ""],
  "another id each time": [AGAIN, "{ ...init, signal:", "{ ...init, body: init.body.replace(/[0-9a-f]{32}\"/, Math.random()), signal:"],
  "the reports as they are by then": ["what the caller changes meanwhile is not sent", "{ ...init, signal:", "{ ...init, body: init.body(), signal:", "const body = JSON", "const body = () => JSON"],
  "Retry-After is ignored": [AFTER, "retryAfter(after, clock.now()) +", "0 +"],
  "Retry-After in milliseconds": [AFTER, "return 1000 * text", "return 1 * text"],
  "Retry-After without dates": [AFTER, "DATE.test(text)", "false"],
  "any text is a date": [AFTER, "DATE.test(text)", "true"],
  "a date that is over": [AFTER, "Math.max(0, Date.parse(text) - now)", "Math.abs(Date.parse(text) - now)"],
  "Retry-After is cut to the time that is left": [AFTER, "clock.now() + pause >= end", "false"],
  "pauses do not grow": [PAUSES, "2 ** (count - 1)", "1"],
  "pauses without a limit": [PAUSES, "Math.min(LONGEST, FIRST * 2 ** (count - 1))", "FIRST * 2 ** (count - 1)"],
  "pauses without chance": [PAUSES, "clock.random() *", "1 *"],
  "one attempt too many": [BOUND, "count === attempts", "count > attempts"],
  "any time": [BOUND, "clock.now() + pause >= end", "false"],
  "a failing network is final": [DOWN, "status: 0, final: false", "status: 0, final: true"],
  "an attempt without an end": [DOWN, "[signal, late]", "[signal, AbortSignal.abort()]"],
  "an attempt as long as everything": [DOWN, "Math.min(ATTEMPT, end - clock.now())", "end - clock.now()"],
  "an attempt beyond the end": [DOWN, "Math.min(ATTEMPT, end - clock.now())", "ATTEMPT"],
  "an abort does not end an attempt": [ABORT, "[signal, late]", "[late]"],
  "an abort is a failing network": [ABORT, "if (status === 202) return;\n    signal?.throwIfAborted();", "if (status === 202) return;"],
  "an abort before the next attempt is not seen": [ABORT, "++) {\n    signal?.throwIfAborted();", "++) {"],
  "an abort does not end a pause": ["the clock of the machine ends a pause when it is aborted", 'signal?.addEventListener("abort", done);', ""],
  "anything is sent": [ONLY, "list.length && list.every(isReport)", "true"],
  "a report with more in it": [ONLY, "report", " && Object.keys(one).every((key) => KEYS.includes(key))", ""],
  "cookies are sent": [ONLY, 'credentials: "omit"', 'credentials: "include"'],
  "any address": [ONLY, "URL.canParse(url, globalThis.location?.href)", "true"],
  "no limits of attempts": [ONLY, "Number.isSafeInteger(attempts) && attempts > 0 && ", ""],
};

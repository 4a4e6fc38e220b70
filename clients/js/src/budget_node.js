import { open, readFile, readlink, rename, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { Refused, openWith } from "./budget.js";

export { Refused };

const PATIENCE = 10000; // milliseconds
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const refuse = (message) => {
  throw new Refused("budget", message);
};
const orNull = (code) => (error) => (error.code === code ? null : Promise.reject(error));

/** Write a file and force it to the disk. */
async function written(path, text, flag) {
  const file = await open(path, flag, 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

async function syncFolder(path) {
  const folder = await open(dirname(path), "r");
  await folder.sync().catch(() => {}); // some systems cannot
  await folder.close();
}

/**
 * Where process numbers mean what they mean here: this boot of this machine, and this namespace of process numbers, as a
 * container has its own. Null where the system does not tell (it needs /proc, as Linux has it).
 */
async function here() {
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    return `${boot.trim()} ${await readlink("/proc/self/ns/pid")}`;
  } catch {
    return null;
  }
}

/** Whether the process that wrote a lock has certainly ended; of another machine, boot or container nobody knows. */
function ended({ host, place, id }, mine) {
  if (!place || place !== mine.place || host !== mine.host || !Number.isSafeInteger(id) || id < 1) return false;
  try {
    process.kill(id, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

/** What a lock says; one that says nothing (its writer has just begun, or died at it) has not ended. */
function told(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Take the lock file. One whose process has certainly ended is removed, by one process at a time. */
async function locked(lock) {
  const mine = { host: hostname(), place: await here(), id: process.pid, began: String(process.hrtime.bigint()) };
  const text = JSON.stringify(mine); // no other lock is the same: process numbers come again, the time does not
  const until = Date.now() + PATIENCE;
  while (!(await written(lock, text, "wx").catch(orNull("EEXIST")))) {
    const holder = (await readFile(lock, "utf8").catch(orNull("ENOENT"))) ?? "";
    if (ended(told(holder), mine) && (await written(lock + ".old", text, "wx").catch(orNull("EEXIST")))) {
      if ((await readFile(lock, "utf8").catch(orNull("ENOENT"))) === holder) await unlink(lock);
      await unlink(lock + ".old");
    }
    if (Date.now() > until) {
      const { host = "an unknown machine", id = "unknown" } = told(holder);
      refuse(`the budget is locked, by process ${id} of ${host}; make sure that no process, container or machine uses it, ` +
        `then delete ${lock} and ${lock}.old`);
    }
    await pause(2);
  }
}

/** Open the budget in a file. */
export async function openBudget({ path, ...rest }) {
  if (typeof path !== "string" || !path) refuse("a path is needed");
  const lock = path + ".lock";
  let turn = Promise.resolve(); // within this process, one after the other

  const exchange = async (change) => {
    await locked(lock);
    try {
      const text = await readFile(path, "utf8").catch(orNull("ENOENT"));
      let state = null;
      try {
        if (text !== null) state = JSON.parse(text) ?? {};
      } catch {
        state = {}; // damaged: `change` refuses it
      }
      await written(path + ".new", JSON.stringify(change(state)), "w");
      await rename(path + ".new", path);
      await syncFolder(path);
    } finally {
      await unlink(lock);
    }
  };
  const update = (change) => {
    const result = turn.then(() => exchange(change));
    turn = result.catch(() => {});
    return result;
  };
  const notice = "The budget lasts as long as its file: whoever deletes the file, or restores an old one, spends ε anew.";
  return openWith({ update }, rest, { persisted: true, notice });
}

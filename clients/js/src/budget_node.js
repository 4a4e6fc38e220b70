import { open, readFile, rename, unlink } from "node:fs/promises";
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

/** Whether the process that wrote a lock has ended; of another machine nobody knows. */
function ended(text) {
  const [host, id] = text.split(" ");
  if (host !== hostname() || !Number(id)) return false;
  try {
    process.kill(Number(id), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

/** Take the lock file. One that a dead process left is removed, by one process at a time. */
async function locked(lock) {
  const mine = `${hostname()} ${process.pid}`;
  const until = Date.now() + PATIENCE;
  while (!(await written(lock, mine, "wx").catch(orNull("EEXIST")))) {
    const holder = await readFile(lock, "utf8").catch(orNull("ENOENT"));
    if (holder && ended(holder) && (await written(lock + ".old", mine, "wx").catch(orNull("EEXIST")))) {
      if ((await readFile(lock, "utf8").catch(orNull("ENOENT"))) === holder) await unlink(lock);
      await unlink(lock + ".old");
    }
    if (Date.now() > until) refuse("another process holds the lock; if none runs, delete the files .lock and .lock.old");
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

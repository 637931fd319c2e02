import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Runs git in this checkout; undefined where it fails. */
function git(...args: string[]): string | undefined {
  try {
    return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Finds the commit that this tree is compared with: the one that is named, else the merge base with `main`; on `main` itself
 * the commit that set the version in package.json. @throws when there is none
 */
export function comparedCommit(named: string | undefined): string {
  const found = named === undefined ? usual() : git("rev-parse", "--verify", `${named}^{commit}`);
  if (found === undefined || found === "")
    throw new Error(
      named === undefined
        ? "this is no clone with a branch main to compare with: name a commit, npm run bench -- guard <commit>"
        : `this clone holds no commit ${named}`,
    );
  return found;
}

function usual(): string | undefined {
  if (git("rev-parse", "--abbrev-ref", "HEAD") !== "main") {
    return git("merge-base", "HEAD", "main") ?? git("merge-base", "HEAD", "origin/main");
  }
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return git("log", "-1", "--format=%H", `-S"version": "${version}"`, "--", "package.json");
}

/** A commit as people know it: its short name, and the first line of its message. */
export function describeCommit(commit: string): string {
  return git("log", "-1", "--format=%h %s", commit) ?? commit;
}

/**
 * `npm run release [-- --key FILE] [--folder FOLDER]`: the files of a release of this checkout, in `release/`: the npm package, its bill
 * of materials, and the list of their SHA-256 digests; with a private key (Ed25519, PEM) also the list's signature. The same commit makes
 * the same bytes. docs/verify-release.md says how to verify them.
 */
import { execFileSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { billOfMaterials } from "./bill-of-materials.ts";

const root = resolve(import.meta.dirname, "..");
/** Where the public key of releases stands, once there is one. */
const publicKeyFile = "docs/release-key.pem";
const list = "SHA256SUMS";

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 2 ** 27,
  });
}

/** @throws when it is no private key of Ed25519, or not the one whose public half is in the repository */
function signingKey(file: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(readFileSync(file));
  } catch {
    throw new Error(`--key ${file}: is no readable private key in PEM form`);
  }
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`--key ${file}: must be an Ed25519 key`);
  const published = join(root, publicKeyFile);
  if (existsSync(published) && !createPublicKey(readFileSync(published)).equals(createPublicKey(key)))
    throw new Error(`--key ${file}: is not the private half of ${publicKeyFile}`);
  return key;
}

/** When the commit was made: a release has the same bytes whenever it is made. Without a repository, now. */
function commitTime(): Date {
  try {
    return new Date(run("git", "log", "-1", "--format=%cI").trim());
  } catch {
    return new Date();
  }
}

function release(folder: string, keyFile: string | undefined): void {
  const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  if (!readFileSync(join(root, "CHANGELOG.md"), "utf8").includes(`\n## [${version}] - `))
    throw new Error(`CHANGELOG.md has no release ${version}`);
  if (keyFile === undefined && existsSync(join(root, publicKeyFile)))
    throw new Error(`${publicKeyFile} is there, so that the list must be signed: --key <file of the private key>`);
  const key = keyFile === undefined ? undefined : signingKey(keyFile);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run("npm", "pack", "--offline", "--pack-destination", folder);
  const bill = `${name}-${version}.cdx.json`;
  writeFileSync(join(folder, bill), billOfMaterials(name, commitTime()));
  const digests = [bill, `${name}-${version}.tgz`].map((file) => {
    const digest = createHash("sha256")
      .update(readFileSync(join(folder, file)))
      .digest("hex");
    return `${digest}  ${file}\n`;
  });
  writeFileSync(join(folder, list), digests.join(""));
  if (key !== undefined) writeFileSync(join(folder, `${list}.sig`), sign(null, Buffer.from(digests.join("")), key));
  console.log(
    `${folder}:\n${digests.join("")}${key ? `signed: ${list}.sig` : "The list is not signed: no --key was given."}`,
  );
}

try {
  const { values } = parseArgs({ options: { key: { type: "string" }, folder: { type: "string" } } });
  release(resolve(values.folder ?? join(root, "release")), values.key);
} catch (error) {
  console.error(`release: ${(error as Error).message}`);
  process.exitCode = 1;
}

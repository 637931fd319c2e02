/** Why the server cannot start, as one clear line that names the cure. The command line prints it and exits with 1. */
export class StartError extends Error {
  override name = "StartError";
}

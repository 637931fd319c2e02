import { BaseSequencer, type TestSequencerConstructor } from "vitest/node";

/** An order of test files for vitest: in each project those of the list first, in its order; else as vitest has them. */
export function longestFirst(paths: readonly string[]): TestSequencerConstructor {
  function place(file: string): number {
    const at = paths.findIndex((path) => file.endsWith(path));
    return at < 0 ? paths.length : at;
  }
  return class extends BaseSequencer {
    override async sort(files: Parameters<BaseSequencer["sort"]>[0]) {
      const byProject = Map.groupBy(await super.sort(files), ({ project }) => project);
      return [...byProject.values()].flatMap((own) => own.sort((a, b) => place(a.moduleId) - place(b.moduleId)));
    }
  };
}

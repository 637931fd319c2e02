import { useAnswer } from "../../data/answer.ts";
import { Problem } from "../../ui/problem.tsx";
import rulesLook from "../rules.module.css";

interface ExistingProps {
  readonly label: string;
  read(signal: AbortSignal): Promise<readonly string[]>;
  choose(name: string): void;
}

/** A choice of what exists already; nothing where there is none. */
export function ExistingNames({ label, read, choose }: ExistingProps) {
  const answer = useAnswer(read);
  const { value = [], failure, again } = answer.value;
  return (
    <>
      <Problem failure={failure} again={again} />
      {value.length > 0 && (
        <label class={rulesLook.existing}>
          {label}
          <select value="" onChange={({ currentTarget }) => currentTarget.value !== "" && choose(currentTarget.value)}>
            <option value="">Choose…</option>
            {value.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

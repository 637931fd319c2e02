import { useAnswer } from "../../data/answer.ts";
import { Problem } from "../../ui/problem.tsx";
import rulesLook from "../rules.module.css";

interface ExistingProps {
  readonly label: string;
  read(signal: AbortSignal): Promise<readonly string[]>;
  choose(name: string): void;
  /** The heading of what can be done instead; absent: nothing can. */
  readonly or?: string | false;
}

/** A choice of what exists already; nothing where there is none. */
export function ExistingNames({ label, read, choose, or }: ExistingProps) {
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
      {value.length > 0 && or && <h3>{or}</h3>}
    </>
  );
}

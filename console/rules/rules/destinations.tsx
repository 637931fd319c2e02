import type { DescMessage } from "@bufbuild/protobuf";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import type { Form } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";

const destinations = clientOf(DestinationService);

/** As many names are offered; of others the server says whether they exist. */
export const offeredMax = 1000;

interface DestinationsProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly names: readonly string[];
  set(names: string[]): void;
}

/** Says who is notified: destinations that exist. */
export function DestinationsField<S extends DescMessage>({ form, path, names, set }: DestinationsProps<S>) {
  const answer = useAnswer(async (signal) => {
    const page = await destinations.listDestinations({ pageSize: offeredMax }, { signal });
    return { names: page.destinations.map(({ name }) => name), whole: page.nextPageToken === "" };
  });
  const { value, failure, again } = answer.value;
  return (
    <>
      <NamesField
        form={form}
        path={path}
        label="Destinations"
        help="Each of them is notified."
        values={names}
        suggestions={value?.names ?? []}
        known={value?.whole ?? false}
        set={set}
      />
      {value?.names.length === 0 && (
        <p class={ui.hint}>
          There is no destination yet. <a href={linkTo(["rules", "destinations"], { new: "1" })}>Make one</a>: what you
          have written here stays.
        </p>
      )}
      <Problem failure={failure} again={again} />
    </>
  );
}

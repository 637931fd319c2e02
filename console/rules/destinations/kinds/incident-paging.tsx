import type { IncidentPagingDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { SecretField } from "../../../form/fields.tsx";
import { CredentialField } from "./credential-field.tsx";
import type { DestinationKind } from "./kind.ts";

export const incidentPaging: DestinationKind<IncidentPagingDestination> = {
  word: "PagerDuty (incidentPaging)",
  about: "An alert of the paging service: triggered, acknowledged and resolved as the occurrence is.",
  testLeaves: "A test opens an alert there: whoever is on call is paged.",
  where: ({ credentialId }) => (credentialId === "" ? "the service of a stored key" : "the service of a credential"),
  Fields: ({ form, path, value, stored, set }) => (
    <>
      <CredentialField
        form={form}
        path={`${path}.credentialId`}
        label="Key from"
        type="incidentPaging"
        none="the integration key below"
        value={value.credentialId}
        set={(credentialId) =>
          set({ credentialId, integrationKey: credentialId === "" ? (stored?.integrationKey ?? "") : "" })
        }
      />
      {value.credentialId === "" && (
        <SecretField
          form={form}
          path={`${path}.integrationKey`}
          label="Integration key"
          help="PagerDuty: Services, the service, Integrations, Events API V2."
          required
          value={value.integrationKey}
          set={(integrationKey) => set({ integrationKey })}
        />
      )}
    </>
  ),
};

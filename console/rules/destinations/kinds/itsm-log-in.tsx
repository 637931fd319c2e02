import { create } from "@bufbuild/protobuf";
import {
  type BasicAuthorization,
  BasicAuthorizationSchema,
  type DestinationSchema,
  type OAuthAuthorization,
  OAuthAuthorizationSchema,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import { SecretField, TextField } from "../../../form/fields.tsx";
import type { Form } from "../../../form/form.ts";

interface Props<M> {
  readonly form: Form<typeof DestinationSchema>;
  readonly path: string;
  readonly value: M;
  set(value: M): void;
}

export function BasicFields({ form, path, value, set }: Props<BasicAuthorization>) {
  const change = (fields: Partial<BasicAuthorization>) =>
    set(create(BasicAuthorizationSchema, { ...value, ...fields }));
  return (
    <>
      <TextField
        form={form}
        path={`${path}.username`}
        label="User name"
        help="Of an account that may read, create and write incidents."
        required
        value={value.username}
        set={(username) => change({ username })}
      />
      <SecretField
        form={form}
        path={`${path}.password`}
        label="Password"
        required
        value={value.password}
        set={(password) => change({ password })}
      />
    </>
  );
}

interface OAuthProps extends Props<OAuthAuthorization> {
  /** The client stands here, and in no stored credential. */
  readonly ownClient: boolean;
}

export function OAuthFields({ form, path, value, ownClient, set }: OAuthProps) {
  const change = (fields: Partial<OAuthAuthorization>) =>
    set(create(OAuthAuthorizationSchema, { ...value, ...fields }));
  return (
    <>
      {ownClient && (
        <>
          <TextField
            form={form}
            path={`${path}.clientId`}
            label="Client's identifier"
            required
            value={value.clientId}
            set={(clientId) => change({ clientId })}
          />
          <SecretField
            form={form}
            path={`${path}.clientSecret`}
            label="Client's secret"
            required
            value={value.clientSecret}
            set={(clientSecret) => change({ clientSecret })}
          />
        </>
      )}
      <SecretField
        form={form}
        path={`${path}.refreshToken`}
        label="Refresh token"
        help="One that the system exchanges is stored at once."
        required
        value={value.refreshToken}
        set={(refreshToken) => change({ refreshToken })}
      />
      <TextField
        form={form}
        path={`${path}.tokenUrl`}
        label="Address for access tokens"
        placeholder="https://<instance>.service-now.com/oauth_token.do"
        required
        value={value.tokenUrl}
        set={(tokenUrl) => change({ tokenUrl })}
      />
      <TextField
        form={form}
        path={`${path}.authUrl`}
        label="Address at which people get a refresh token"
        required
        value={value.authUrl}
        set={(authUrl) => change({ authUrl })}
      />
      <TextField
        form={form}
        path={`${path}.username`}
        label="User name"
        help="With its password, it renews a refresh token that has expired. Both may be left out."
        value={value.username}
        set={(username) => change({ username })}
      />
      <SecretField
        form={form}
        path={`${path}.password`}
        label="Password"
        value={value.password}
        set={(password) => change({ password })}
      />
    </>
  );
}

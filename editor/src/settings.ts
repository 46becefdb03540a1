/** The server's address, and the token for it. */

import * as vscode from "vscode";
import { Api, ApiError, addressProblem } from "./api";

export const SECTION = "contextRegistry";

export class Settings {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  get address(): string {
    return this.read("serverUrl");
  }

  get program(): string {
    return this.read("program");
  }

  get contextTokens(): number {
    return this.read("contextTokens");
  }

  /** Return a client of the configured server. Throws ApiError if its address must not be used. */
  async api(): Promise<Api> {
    const problem = addressProblem(this.address);
    if (problem === "unencrypted") {
      throw new ApiError("SETTING", vscode.l10n.t("A server on another machine needs https: {0}", this.address));
    }
    if (problem) throw new ApiError("SETTING", vscode.l10n.t("Not a server address: {0}", this.address));
    return new Api(this.address, await this.secrets.get(this.tokenKey()));
  }

  /** Store a token for this server; an empty one deletes it. */
  async storeToken(token: string): Promise<void> {
    await (token ? this.secrets.store(this.tokenKey(), token) : this.secrets.delete(this.tokenKey()));
  }

  /** The key of a token contains its server, so that it is never sent to another one. */
  private tokenKey(): string {
    return `token:${new URL(this.address).origin}`;
  }

  private read<Value>(name: string): Value {
    return vscode.workspace.getConfiguration(SECTION).get(name) as Value;
  }
}

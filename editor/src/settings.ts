/** The server's address, and the token for it. */

import * as vscode from "vscode";
import { Api, ApiError, problemOf } from "./api";

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

  /** Return the configured server; ApiError if its address must not be used. */
  async api(): Promise<Api> {
    const problem = problemOf(this.address);
    if (problem === "unencrypted") {
      throw new ApiError("SETTING", vscode.l10n.t("The server on another machine must be reached by https: {0}", this.address));
    }
    if (problem) throw new ApiError("SETTING", vscode.l10n.t("This is no server address: {0}", this.address));
    return new Api(this.address, await this.secrets.get(this.tokenKey()));
  }

  /** Store a token for this server; an empty one deletes it. */
  async keepToken(token: string): Promise<void> {
    await (token ? this.secrets.store(this.tokenKey(), token) : this.secrets.delete(this.tokenKey()));
  }

  /** The key of a server's token: it is never sent to another address. */
  private tokenKey(): string {
    return `token:${new URL(this.address).origin}`;
  }

  private read<Value>(name: string): Value {
    return vscode.workspace.getConfiguration(SECTION).get(name) as Value;
  }
}

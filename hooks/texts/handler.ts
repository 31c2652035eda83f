// Written by `mem hook install openclaw`. Changes are kept: mem does not
// overwrite or remove a file that was edited.
import { spawnSync } from "node:child_process";

const COMMAND: string[] = @COMMAND@;

const EVENTS: Record<string, string> = {
  "agent:bootstrap": "SessionStart",
  "session:compact:before": "PreCompact",
  "command:new": "SessionEnd",
  "command:reset": "SessionEnd",
  "command:stop": "SessionEnd",
};

export default async function handler(event: any): Promise<void> {
  try {
    const name = EVENTS[`${event?.type}:${event?.action}`];
    if (!name) return;
    const context = event.context ?? {};
    const input = JSON.stringify({
      hook_event_name: name,
      session_id: String(event.sessionKey ?? ""),
      cwd: context.workspaceDir ?? context.cwd ?? process.cwd(),
      source: event.action,
    });
    const [program, ...args] = COMMAND;
    const run = spawnSync(program, [...args, "hook", "run", name, "--host", "openclaw"], {
      input,
      encoding: "utf8",
      timeout: 10_000,
      maxBuffer: 1 << 20,
    });
    if (name === "SessionStart" && run.stdout && Array.isArray(context.bootstrapFiles)) {
      context.bootstrapFiles.push({ name: "MEM.md", path: "MEM.md", content: run.stdout, missing: false });
    }
  } catch {
    // A memory hook never breaks its host.
  }
}

# Servers of tools in Python, with the tools of the reference servers that are on PyPI:
# "git" (git_status, git_add, git_commit, git_log of a repository) and "fetch". They speak
# the protocol on stdio by themselves, for tests have no packages of PyPI.
import json, subprocess, sys, urllib.request

def git(*args):
    done = subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.com", "-C", sys.argv[2], *args],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout

def fetch(url):
    with urllib.request.urlopen(url, timeout=20) as r:
        return r.read().decode()

text = {"type": "string"}
TOOLS = {
    "git": {
        "git_status": ("Shows the working tree status", {}, lambda a: git("status", "--short")),
        "git_add": ("Adds file contents to the staging area", {"files": text}, lambda a: git("add", a["files"])),
        "git_commit": ("Records changes to the repository", {"message": text}, lambda a: git("commit", "-m", a["message"])),
        "git_log": ("Shows the commit logs", {}, lambda a: git("log", "--format=%s")),
    },
    "fetch": {"fetch": ("Fetches a URL from the internet", {"url": text}, lambda a: fetch(a["url"]))},
}[sys.argv[1]]

def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "mcp-" + sys.argv[1], "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": n, "description": d, "inputSchema": {"type": "object", "properties": p}}
                          for n, (d, p, _) in TOOLS.items()]}
    if method == "tools/call":
        try:
            said, failed = TOOLS[params["name"]][2](params.get("arguments") or {}), False
        except Exception as e:
            said, failed = str(e), True
        return {"content": [{"type": "text", "text": said}], "isError": failed}
    return {}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})}),
              flush=True)

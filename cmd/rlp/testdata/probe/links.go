package main

import (
	"os"
	"strings"
	"syscall"
	"time"

	"runloop.dev/rlp/agents/sdk"
)

// linkCommands are file operations beyond those of every agent, and the calls to
// others: servers and agents.
var linkCommands = map[string]command{
	"symlink":  {2, func(a []string) (string, error) { return "ok", os.Symlink(a[0], a[1]) }},
	"readlink": {1, func(a []string) (string, error) { return os.Readlink(a[0]) }},
	"rmdir":    {1, func(a []string) (string, error) { return "ok", syscall.Rmdir(a[0]) }},
	"touch":    {1, func(a []string) (string, error) { return "ok", os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) }},
	"environ":  {0, func([]string) (string, error) { return strings.Join(os.Environ(), " "), nil }},
	"putwhy": {3, func(a []string) (string, error) {
		_, err := sdk.KBPut(a[0], a[1], []byte(a[2]))
		if err != nil {
			return "", hinted(err)
		}
		return "ok", nil
	}},
	"files":   {1, manyFiles},
	"paths":   {1, badPaths},
	"chatter": {1, chatter},
	"hoard":   {2, hoard},
	"mcp": {2, func(a []string) (string, error) {
		r, err := sdk.MCPCall(a[0], a[1], nil)
		return string(r), err
	}},
	"tool": {3, func(a []string) (string, error) {
		r, err := sdk.MCPCall(a[0], a[1], []byte(a[2]))
		if err != nil {
			return "", hinted(err)
		}
		return string(r), nil
	}},
	"agent": {1, func(a []string) (string, error) {
		r, err := sdk.AgentLaunch(sdk.LaunchRequest{Agent: a[0]})
		return string(r.Result), err
	}},
}

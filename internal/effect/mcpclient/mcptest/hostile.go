package mcptest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Answers are what hostile servers write, whatever they are asked: "$ID" stands
// for the id of what they were asked last.
func Answers() map[string]string {
	hello := `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`
	return map[string]string{
		"noise":     "Starting server on stdio ...\n",
		"half":      `{"jsonrpc":"2.0","id":$ID,`,
		"no json":   "}{\n",
		"number":    "42\n",
		"null":      "null\n",
		"batch":     `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]` + "\n",
		"no result": `{"jsonrpc":"2.0","id":$ID}` + "\n",
		"both":      `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}` + "\n",
		"version":   strings.ReplaceAll(hello, "2025-11-25", "1999-01-01") + "\n",
		"other id":  strings.ReplaceAll(hello, "$ID", "999") + "\n",
		"odd types": `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":7,"capabilities":[],"serverInfo":0}}` + "\n",
		"binary":    "\x00\x01\xff\xfe\n",
		"deep": `{"jsonrpc":"2.0","id":$ID,"result":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) +
			"}\n",
		"a request": `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}` + "\n",
	}
}

// misbehave is a server that does not even begin to be one.
func misbehave(kind string) bool {
	switch kind {
	case "silent": // reads, and never says a word
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // does not even read
		select {}
	case "line": // a line without an end
		for out := bufio.NewWriter(os.Stdout); ; {
			if _, err := out.WriteString("xxxxxxxxxxxxxxxx"); err != nil {
				return true
			}
		}
	case "noise":
		_, _ = os.Stdout.WriteString(Answers()["noise"])
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "dead":
		_, _ = os.Stderr.WriteString("cannot find my configuration " + Injection + "\n")
		os.Exit(4)
	default:
		return false
	}
	return true
}

// fork starts a process of a session of its own that holds the lock of a file.
func fork(lock string) string {
	c := exec.Command("/bin/sh", "-c", `trap "" HUP TERM INT; : >"$0"; exec flock "$0" sleep 1000`, lock)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return "refused: " + err.Error()
	}
	for exec.Command("flock", "-n", lock, "true").Run() == nil { // until it holds it
	}
	return "forked"
}

// Command probe is an agent that does what its arguments say, one command
// after the other, and prints what came of each: the tests' way to ask the
// runtime anything.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = given()
	}
	for len(args) > 0 {
		name := args[0]
		c, ok := find(name)
		if !ok || len(args) <= c.args {
			fmt.Fprintf(os.Stderr, "probe: bad command %q\n", name)
			os.Exit(3)
		}
		text, err := c.do(args[1 : 1+c.args])
		if err != nil {
			text = "error: " + why(err)
		}
		fmt.Printf("%s %s: %s\n", name, strings.Join(args[1:1+c.args], " "), text)
		args = args[1+c.args:]
	}
}

// find looks name up in the tables of all families.
func find(name string) (command, bool) {
	for _, table := range []map[string]command{
		commands, turnCommands, taintCommands, netCommands, secretCommands,
		modelCommands, execCommands, kbCommands, maskCommands, linkCommands, limitCommands, delegateCommands,
	} {
		if c, ok := table[name]; ok {
			return c, true
		}
	}
	return command{}, false
}

func why(err error) string {
	var e *sdk.Error
	if errors.As(err, &e) {
		return err.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

type command struct {
	args int
	do   func(a []string) (string, error)
}

var commands = map[string]command{
	"read":    {1, read},
	"write":   {2, func(a []string) (string, error) { return "ok", os.WriteFile(a[0], []byte(a[1]), 0o600) }},
	"ls":      {1, list},
	"stat":    {1, stat},
	"remove":  {1, func(a []string) (string, error) { return "ok", os.Remove(a[0]) }},
	"rename":  {2, func(a []string) (string, error) { return "ok", os.Rename(a[0], a[1]) }},
	"mkdir":   {1, func(a []string) (string, error) { return "ok", os.Mkdir(a[0], 0o700) }},
	"link":    {2, func(a []string) (string, error) { return "ok", os.Link(a[0], a[1]) }},
	"trunc":   {1, trunc},
	"env":     {1, func(a []string) (string, error) { return os.Getenv(a[0]), nil }},
	"args":    {0, func([]string) (string, error) { return strings.Join(os.Args, " "), nil }},
	"stdin":   {0, stdin},
	"now":     {0, func([]string) (string, error) { return strconv.Itoa(time.Now().Year()), nil }},
	"time":    {0, hostTime},
	"put":     {3, put},
	"get":     {2, get},
	"del":     {2, func(a []string) (string, error) { return "ok", sdk.KBDelete(a[0], a[1]) }},
	"cas":     {4, cas},
	"list":    {2, kbList},
	"log":     {2, func(a []string) (string, error) { return "ok", sdk.Log(sdk.Level(a[0]), a[1]) }},
	"result":  {1, func(a []string) (string, error) { return "ok", sdk.Result([]byte(a[0])) }},
	"stderr":  {1, func(a []string) (string, error) { _, err := fmt.Fprintln(os.Stderr, a[0]); return "ok", err }},
	"errtext": {1, func(a []string) (string, error) { _, err := os.Stderr.WriteString(a[0]); return "ok", err }},
	"sleep":   {1, sleep},
	"spin":    {0, func([]string) (string, error) { return spin(), nil }},
	"grow":    {1, grow},
	"flood":   {1, flood},
	"wait":    {1, wait},
	"exit":    {1, func(a []string) (string, error) { n, err := strconv.Atoi(a[0]); os.Exit(n); return "", err }},
	"panic":   {0, func([]string) (string, error) { panic("probe") }},
	"repeat":  {2, repeat},
}

func read(a []string) (string, error) {
	b, err := os.ReadFile(a[0])
	return strings.TrimSpace(string(b)), err
}

func list(a []string) (string, error) {
	entries, err := os.ReadDir(a[0])
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " "), err
}

func stat(a []string) (string, error) {
	info, err := os.Stat(a[0])
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Mode().Type(), " ", info.Size()), nil
}

func trunc(a []string) (string, error) {
	f, err := os.OpenFile(a[0], os.O_RDONLY|os.O_TRUNC, 0)
	if err != nil {
		return "", err
	}
	return "ok", f.Close()
}

func stdin([]string) (string, error) {
	b, err := io.ReadAll(bufio.NewReader(os.Stdin))
	return string(b), err
}

func hostTime([]string) (string, error) {
	t, err := sdk.TimeNow()
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(t.Year() > 2025), nil
}

func put(a []string) (string, error) {
	rev, err := sdk.KBPut(a[0], a[1], []byte(a[2]))
	return fmt.Sprint("revision ", rev), err
}

func cas(a []string) (string, error) {
	want, err := strconv.ParseUint(a[3], 10, 64)
	if err != nil {
		return "", err
	}
	rev, err := sdk.KBCAS(a[0], a[1], []byte(a[2]), want)
	return fmt.Sprint("revision ", rev), err
}

func get(a []string) (string, error) {
	v, err := sdk.KBGet(a[0], a[1])
	return string(v), err
}

func kbList(a []string) (string, error) {
	entries, err := sdk.KBList(a[0], a[1])
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return strings.Join(keys, " "), err
}

func sleep(a []string) (string, error) {
	d, err := time.ParseDuration(a[0])
	time.Sleep(d)
	return "ok", err
}

//go:noinline
func spin() string {
	for n := uint64(1); ; n++ {
		if n == 0 {
			return "never"
		}
	}
}

func grow(a []string) (string, error) {
	mib, err := strconv.Atoi(a[0])
	kept := make([][]byte, 0, mib)
	for range mib {
		b := make([]byte, 1<<20)
		b[0], b[len(b)-1] = 1, 1
		kept = append(kept, b)
	}
	return strconv.Itoa(len(kept)), err
}

func flood(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	line := strings.Repeat("x", 1023) + "\n"
	for range n {
		fmt.Print(line)
	}
	return "ok", err
}

// repeat reads a path n times: many decisions in one run.
func repeat(a []string) (string, error) {
	n, err := strconv.Atoi(a[1])
	failed := 0
	for range n {
		if _, err := os.Stat(a[0]); err != nil {
			failed++
		}
	}
	return fmt.Sprintf("%d failed", failed), err
}

// wait looks for a file until it is there. Without time its clock is virtual,
// and it looks without a pause.
func wait(a []string) (string, error) {
	for {
		if _, err := os.Stat(a[0]); !errors.Is(err, os.ErrNotExist) {
			return "there", err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

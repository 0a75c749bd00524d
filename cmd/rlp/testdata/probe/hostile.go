package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

// What an agent does that means harm.

// manyFiles opens a file until it may not any more, and says how often.
func manyFiles(a []string) (string, error) {
	var open []*os.File
	for {
		f, err := os.Open(a[0])
		if err != nil {
			return fmt.Sprint(len(open)), nil
		}
		open = append(open, f)
	}
}

// badPaths tries to leave a folder in every way that there is, and says how many
// ways led out.
func badPaths(a []string) (string, error) {
	dir, out := a[0], 0
	_ = os.Symlink("/etc", dir+"/way")
	_ = os.Symlink("../../../../../../etc", dir+"/up")
	_ = os.Link("/etc/passwd", dir+"/hard")
	for _, p := range []string{
		"/etc/passwd", dir + "/way/passwd", dir + "/up/passwd", dir + "/hard", dir + "/../../../../../../etc/passwd",
		"/proc/self/environ",
		"/proc/self/root/etc/passwd", "/dev/mem", "//etc//passwd", dir + "/./../x/../../etc/passwd",
		strings.Repeat("/a", 3000), dir + "/\x7f",
	} {
		if f, err := os.Open(p); err == nil {
			out++
			f.Close()
		}
		if err := os.WriteFile(p+".new", nil, 0o600); err == nil && !strings.HasPrefix(p, dir) {
			out++
		}
	}
	if out > 0 {
		return "", fmt.Errorf("%d ways out", out)
	}
	return "none", nil
}

// chatter logs many long lines.
func chatter(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	line := strings.Repeat("y", 1000)
	for i := range n {
		if err := sdk.Log("info", fmt.Sprint(i, line)); err != nil {
			return "", err
		}
	}
	return "ok", err
}

// hoard puts n values of 64 KiB into a domain, each under a key of its own.
func hoard(a []string) (string, error) {
	n, err := strconv.Atoi(a[1])
	value := []byte(strings.Repeat("z ", 32<<10))
	for i := range n {
		if _, err := sdk.KBPut(a[0], fmt.Sprint("hoard", i), value); err != nil {
			return "", err
		}
	}
	return "ok", err
}

package routes

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// targets are paths of which some lead out of /v1 on some server, and some do not.
var targets = []string{
	"/v1/../admin", "/v1/%2e%2e/admin", "/v1/.%2E/admin", "/v1/..%2fadmin", "/v1/..%5cadmin",
	`/v1/..\admin`, "/v1//../admin", "/v1/%252e%252e/admin", "/v1/..;/admin", "//v1/../admin",
	"/v1/x/../../admin", "/v1/%2e%2e%2f%2e%2e/admin", "/v1/x", "/v1/%41", "/v1/a%20b", "/v1/%c3%a4",
	"/v1/x;y=z", "/v1/x%3By", "/v1/..%3b/admin", "/v1/.../admin", "/v1/..%3f/admin", "/v1/..%20/admin",
	"/v1/..a", "/v1/a:b", "/v1/x/", "/v1/~x", "/v1/a+b",
}

// What a route of /v1/* takes is below /v1 to servers for Node and Python as well, and
// is what they see. The control is that the targets as they are lead them out.
func TestOtherServersSeeWhatRoutesTake(t *testing.T) {
	route := caps.Route{Methods: 1, Path: "/v1/*"}
	for program, script := range map[string]string{"python3": "testdata/server.py", "node": "testdata/server.mjs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("not asked: %s, which is not here (.ci/setup); caps has the same for servers of Go", program)
			continue
		}
		ask := serving(t, program, script)
		led, taken := false, 0
		for _, target := range targets {
			for _, seen := range strings.Split(ask(target), "\n") {
				led = led || !within(seen)
			}
			path, err := caps.RoutePath(target)
			if err != nil || !route.Takes(0, path) {
				continue
			}
			taken++
			for _, seen := range strings.Split(ask(path), "\n") {
				if !within(seen) {
					t.Errorf("%s: %q is taken as %q, and it sees %q", program, target, path, seen)
				}
			}
		}
		if !led || taken < 10 {
			t.Errorf("%s: led out %v, %d paths taken: the test says nothing", program, led, taken)
		}
	}
}

func within(path string) bool { return strings.HasPrefix(path, "/v1/") }

// serving starts a server, and returns what tells how it reads a target.
func serving(t *testing.T, program, script string) func(target string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, script)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return func(target string) string {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strings.TrimSpace(port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", target)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s %q: %v", program, target, err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
}

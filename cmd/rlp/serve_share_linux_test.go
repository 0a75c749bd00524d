package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/api"
)

// A holding caller keeps open whatever connections it gets.
type holding struct {
	t              *testing.T
	address, token string
	codes          map[int]int
}

// ask connects, asks for a path and leaves the connection open.
func (h *holding) ask(path string) {
	h.t.Helper()
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, h.address,
		h.token); err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		h.t.Fatalf("after %v: %v", h.codes, err)
	}
	h.codes[resp.StatusCode]++
	if closes := resp.StatusCode == http.StatusTooManyRequests; resp.Close != closes {
		h.t.Fatalf("%s: its connection is closed: %v", resp.Status, resp.Close)
	}
}

// isServed asks as whoever has a token, on a connection of its own. Its time is for a
// service that never answers.
func isServed(t *testing.T, address, path, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s %v", path, resp.Status, err)
	}
}

// One token that may only run asks on more connections than there are and keeps all
// that it gets, as streams and idle: it has its share, and the token of another
// tenant, /healthz and the operator are answered, however many descriptors there are.
func TestOneTokenKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	tokenOf := func(args ...string) string {
		r := start(t, h.env, "rlp", append(args, "--expires", "1d", "-q")...)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return strings.TrimSpace(r.stdout)
	}
	attacker := tokenOf("token", "new", "--name", "attacker", "--may", "run")
	victim := tokenOf("--tenant", "acme", "token", "new", "--name", "victim", "--may", "run,read")
	for _, files := range []uint64{256, 1024, 20000} {
		if testing.Short() && files > 1024 {
			continue
		}
		files = min(files, api.Descriptors()/2)
		_, address := api.Places(files)
		for path, most := range map[string]int{"/events": min(address/8, 128), "/runs": address + address/8} {
			t.Run(fmt.Sprint(files, path), func(t *testing.T) {
				s := h.servingBy(t, exec.Command("sh", "-c", `ulimit -n "$0" && exec rlp serve --json --listen 127.0.0.1:0`,
					strconv.FormatUint(files, 10)))
				_, at, _ := strings.Cut(s.said.Addresses[1], "://")
				a := &holding{t, at, attacker, map[int]int{}}
				isServed(t, at, "/runs", victim)
				for range address + address/8 {
					a.ask(path)
				}
				if a.codes[http.StatusOK] != most || a.codes[http.StatusOK]+a.codes[http.StatusTooManyRequests] != address+
					address/8 {
					t.Errorf("the token was answered %v, of %d places", a.codes, address)
				}
				for range 3 {
					isServed(t, at, "/runs", victim)
					isServed(t, at, "/healthz", "")
				}
				if status, said := s.ask(t, 0, http.MethodGet, "/runs", nil); status != http.StatusOK {
					t.Errorf("the operator by the socket: %d %s", status, said)
				}
			})
		}
	}
}

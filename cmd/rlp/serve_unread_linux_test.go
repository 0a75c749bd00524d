//go:build !race

package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A module that prints 1 MiB of bytes of 1 on stdout and as many on stderr: six times
// as long in JSON.
const printsMuch = "0061736d01000000010c0260047f7f7f7f017f60000002230116776173695f736e617073686f745f70726576696577310866645f77726974650000030201010503010012071302065f73746172740001066d656d6f727902000a3b013900418080044101418080c000fc0b004100418080043602004104418080c000360200410141004101411010001a410241004101411010001a0b"

// peak is the most memory that a process has had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// Sixty runs are asked for whose reports are 12 MiB each in JSON, and nobody reads
// one: the service holds what it may of them, and others are answered.
func TestReportsThatNobodyReadsHoldLittle(t *testing.T) {
	t.Parallel()
	wasm, err := hex.DecodeString(printsMuch)
	if err != nil {
		t.Fatal(err)
	}
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	if r := start(t, h.env, "rlp", "agent", "install", bundleOf(t, wasm)); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	token := func(name string) string {
		r := start(t, h.env, "rlp", "token", "new", "--name", name, "--may", "run,read", "--expires", "1d", "-q")
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return strings.TrimSpace(r.stdout)
	}
	deaf, other := token("deaf"), token("other")
	s := h.serving(t)
	_, at, _ := strings.Cut(s.said.Addresses[1], "://")
	before := peak(t, s.cmd.Process.Pid)
	const body = `{"agent":"bomb"}`
	for range 60 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := fmt.Fprintf(c, "POST /run HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: "+
			"%d\r\n\r\n%s", at, deaf, len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/run", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+other)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK || n < 12<<20 {
		t.Errorf("another caller: %s, %d bytes, %v", resp.Status, n, err)
	}
	for running := true; running; { // until what may begin has ended
		_, text := s.ask(t, 0, http.MethodGet, "/runs?state=running", nil)
		running = strings.Contains(text, "run_id")
	}
	if after := peak(t, s.cmd.Process.Pid); after-before > 400 {
		t.Errorf("the service took %d MiB, and %d before", after, before)
	}
}

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"runloop.dev/rlp/launcher"
)

// A service that does not take runs is not ready, whatever it says; one that does is.
func TestCheckService(t *testing.T) {
	var status atomic.Int64
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status.Store(http.StatusTeapot)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "said\n")
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	a := &app{environment: environment{env: []string{"HOME=/nowhere"}, stdout: io.Discard}}
	for code, ready := range map[int]bool{
		http.StatusOK: true, http.StatusServiceUnavailable: false,
		http.StatusNotFound: false,
	} {
		status.Store(int64(code))
		err := checkService(context.Background(), a, socket)
		var se *statusError
		if ready && err != nil || !ready && (!errors.As(err, &se) || se.Status != launcher.StatusUnavailable ||
			!strings.Contains(err.Error(), "said")) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// Where nobody serves, it is said that nobody does, and what to do; why the kernel
// thinks so is said behind it.
func TestCheckOfNobody(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a := &app{environment: environment{env: []string{"HOME=/nowhere"}, stdout: io.Discard}}
	for socket, want := range map[string]string{
		filepath.Join(dir, "none"): "no rlp serve at " + filepath.Join(dir, "none") +
			": nobody serves this home; rlp serve does",
		dead: "no rlp serve at " + dead + ": what served there has ended; start it again with rlp serve",
	} {
		err := checkService(context.Background(), a, socket)
		var se *statusError
		if !errors.As(err, &se) || se.Status != launcher.StatusUnavailable || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

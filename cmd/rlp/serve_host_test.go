package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A testHost is what a service is asked, in a home of its own.
type testHost struct {
	questions
	home string
	who  *service.Caller
}

// testingHost is a host whose config.toml says config.
func testingHost(t testing.TB, config string) *testHost {
	t.Helper()
	r := hosttest.Runner(t, config)
	a := &app{tenant: "default", environment: environment{
		env: r.Env, stdout: io.Discard, stderr: t.Output(), kept: r.Kept,
	}}
	h := host.New(r, r.HomeDir, slog.New(slog.NewTextHandler(t.Output(), nil)), time.Now)
	return &testHost{questions{h, a}, r.HomeDir, &service.Caller{
		Name: "user:1", Tenant: "default", May: service.Launch | service.Read | service.Operate,
	}}
}

// put writes a file of the operator's.
func (h *testHost) put(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(h.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// do is a request as the service does it.
func (h *testHost) do(t testing.TB, q *service.Request) (*launcher.Report, error) {
	t.Helper()
	id, err := ident.NewRun()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(t.Context(), h.who, q); err != nil {
		return nil, err
	}
	return h.Launch(t.Context(), h.who, q, service.Begin{RunID: id.String()})
}

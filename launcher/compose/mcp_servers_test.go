package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/internal/effect/mcpclient/mcptest"
	"runloop.dev/rlp/launcher/run"
)

// A name that leads to this machine, or into its network, is not reached for a
// server of tools either; an address that the operator wrote is.
//
//rlp:holds K53
func TestAServersNameLeadsNowherePrivate(t *testing.T) {
	srv := httptest.NewServer(mcptest.Handler("good"))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	client := egress.New(egress.Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	defer client.Close()
	var refused *egress.AddressError
	if _, err := mcpclient.Connect(t.Context(), mcpclient.HTTP("http://mcp.example.com"+port, "", client)); !errors.As(err,
		&refused) {
		t.Errorf("a name that leads to loopback: %v", err)
	}
	s, err := mcpclient.Connect(t.Context(), mcpclient.HTTP(srv.URL, "", client)) // control
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// What was written down reads the same again, whatever a server says; what is not
// as it was written, or not the operator's, is nothing that a server is known by.
func TestPins(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	odd := "\x00\x1b[2J\u2028\u202e<&>\\\"\n\t\ufffd\U0001f600"
	schema, err := json.Marshal(map[string]any{odd[1:]: []any{odd, 1.5, nil, map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	said := NewPin("hub", []mcpclient.Tool{
		{Name: odd, Description: odd, Schema: schema},
		{Name: "z", Schema: []byte(`{}`)},
	}, time.Unix(1, 2))
	for i, first := range []bool{true, false, false} {
		if pinned, err := know(h, said); err != nil || pinned != first {
			t.Fatalf("%d: %v %v", i, pinned, err)
		}
	}
	twice := NewPin("twice", []mcpclient.Tool{{Name: "z", Schema: []byte(`{"a":1,"a":2}`)}}, time.Unix(1, 2))
	if _, err := know(h, twice); err == nil || !strings.Contains(err.Error(), "not read twice alike") {
		t.Errorf("a schema that has a key twice: %v", err)
	}
	if p, err := ReadPin(PinPath(h, "twice"), "twice"); p != nil || err != nil {
		t.Errorf("it is written down: %v, %v", p, err)
	}
	got, err := ReadPin(PinPath(h, "hub"), "hub")
	if err != nil || !reflect.DeepEqual(got, said) {
		t.Errorf("%v\n%+v\n%+v", err, got, said)
	}
	other := NewPin("hub", said.Tools[:1], time.Unix(2, 0))
	if pinned, err := know(h, other); !errors.Is(err, errChanged) || pinned {
		t.Errorf("changed: %v %v", pinned, err)
	}
	if seen, err := ReadPin(SeenPath(h, "hub"), "hub"); err != nil || !reflect.DeepEqual(seen, other) {
		t.Errorf("seen: %+v %v", seen, err)
	}
	text, err := os.ReadFile(PinPath(h, "hub"))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(path string) error{
		"empty": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"another tool": func(p string) error {
			return os.WriteFile(p, bytes.Replace(text, []byte(`"z"`), []byte(`"y"`), 1), 0o600)
		},
		"another key": func(p string) error {
			return os.WriteFile(p, bytes.Replace(text, []byte(`"at"`), []byte(`"when"`), 1), 0o600)
		},
		"another server": func(p string) error {
			return os.WriteFile(p, bytes.Replace(text, []byte(`"hub"`), []byte(`"web"`), 1), 0o600)
		},
		"writable by all": func(p string) error { return errors.Join(os.WriteFile(p, text, 0o600), os.Chmod(p, 0o666)) },
		"a dangling link": func(p string) error { return errors.Join(os.Remove(p), os.Symlink(p+"nowhere", p)) },
		"a folder":        func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
	} {
		path := PinPath(h, "hub")
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if pinned, err := know(h, said); err != nil || pinned {
			t.Fatalf("%s: control: %v %v", name, pinned, err)
		}
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		if pinned, err := know(h, said); err == nil || pinned || errors.Is(err, errChanged) {
			t.Errorf("%s: %v %v", name, pinned, err)
		}
	}
}

// A server that changes without a word is found out when it is asked again, and
// stays refused though it takes its words back.
func TestAServerThatChangesQuietly(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(mcptest.Handler("quiet"))
	defer srv.Close()
	now := time.Unix(1, 0)
	all := &mcpServers{
		c:      &Composition{Home: h, Config: config.Config{MCP: map[string]config.MCPServer{"hub": {URL: srv.URL}}}},
		byName: map[string]*mcpServer{},
		spec:   &run.Spec{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)},
		http:   egress.New(egress.Config{}),
	}
	defer func() {
		if err := all.close(); err != nil {
			t.Error(err)
		}
	}()
	hub := all.Server("hub")
	if all.Server("other") != nil {
		t.Error("a server that nobody configured")
	}
	tools := func(want error) {
		t.Helper()
		if _, err := hub.Tools(t.Context()); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	tools(nil)
	if _, err := hub.Call(t.Context(), "given", nil); err != nil {
		t.Fatal(err)
	}
	tools(nil) // it was asked a moment ago
	now = now.Add(mcpListedFor + time.Second)
	tools(hostcalls.ErrServerChanged)
	if err := os.Remove(PinPath(h, "hub")); err != nil {
		t.Fatal(err)
	}
	tools(hostcalls.ErrServerChanged)
	if _, err := hub.Call(t.Context(), "echo", nil); err == nil {
		t.Error("it is called all the same")
	}
}
